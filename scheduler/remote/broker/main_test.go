package broker_test

import (
	"testing"

	"github.com/edda-go/edda/internal/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
