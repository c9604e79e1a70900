package brokers

import (
	"os"
	"testing"

	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/border/rabbit"
	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestMain(m *testing.M) {
	cluster.RunNode()
	rabbit.RunNode()
	os.Exit(pgdev.Main(m))
}
