package main

import (
	"flag"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/border/brokers"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/border/rabbit"
	"github.com/edda-go/edda/internal/test/chaos/lab"
)

// The scenarios.
var (
	borderScenario = lab.Scenario{
		Name: "border", About: "two databases and a broker between them, all of them killed and frozen",
		Full: lab.Size{For: time.Minute}, Quick: lab.Size{For: 15 * time.Second},
		Flags: func(f *flag.FlagSet) {
			f.Func("over", "border, lag: ways, with commas between: batches, watermill-nats, rabbitmq; by default the "+
				"first two", func(text string) error {
				flags.over = strings.Split(text, ",")
				return nil
			})
		},
		SQL: sql, Rules: []string{"lost", "doubled", "disorder", "invented", "dead"},
		Run: overEach(border), Work: work,
	}
	shopScenario = lab.Scenario{
		Name: "shop", About: "the services of examples/two-databases, both servers and the broker killed and frozen",
		Full: lab.Size{Workers: 4, For: time.Minute}, Quick: lab.Size{Workers: 4, For: 15 * time.Second},
		Flags: func(f *flag.FlagSet) { f.IntVar(&flags.orders, "orders", 50, "shop: orders a second") },
		Rules: []string{"lost", "double", "wrong"},
		Run:   openShop, Work: serve,
	}
	speedScenario = lab.Scenario{
		Name: "speed", About: "measure: how fast a relay gives and an intake takes",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&flags.backlog, "backlog", 100_000,
				"speed: messages that are relayed, and taken in; a tenth with -quick")
		},
		SQL: sql, Rules: []string{"lost"},
		Run: speed,
	}
	lagScenario = lab.Scenario{
		Name: "lag", About: "measure: how long after its commit a message is in the other database",
		Full: lab.Size{For: 15 * time.Second}, Quick: lab.Size{For: 5 * time.Second},
		Flags: func(f *flag.FlagSet) { f.IntVar(&flags.rate, "rate", 1000, "lag: messages a second") },
		SQL:   sql, Rules: []string{"lost"},
		Run: overEach(lag),
	}
)

var flags = struct {
	over                  []string
	backlog, rate, orders int
}{over: []string{brokers.Batches, brokers.WatermillNATS}}

func main() {
	cluster.RunNode() // neither returns in a node of a broker
	rabbit.RunNode()
	lab.Main(speedScenario, lagScenario, borderScenario, shopScenario, remoteScenario)
}
