package wire

// Limits of a queue's table, by its constraints, in bytes. They are far above the limits of a send. A message beyond
// them cannot become a dead letter, because it could not be retried.
const (
	MostHeader = 2 << 20
	MostBody   = 16 << 20
)
