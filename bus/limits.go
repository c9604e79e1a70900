package bus

import "github.com/edda-go/edda/internal/limit"

// MostLimit is the largest limit there can be.
const MostLimit = limit.Most
