package pg_test

import (
	"os"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }
