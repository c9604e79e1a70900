package main

import (
	"flag"
	"time"

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
			f.StringVar(&flags.over, "over", "",
				"border, lag: go over batches, watermill-nats or rabbitmq; empty is the first two, one after the other")
		},
		Run: border, Work: work,
	}
	shopScenario = lab.Scenario{
		Name: "shop", About: "the services of examples/two-databases, both servers and the broker killed and frozen",
		Full: lab.Size{Workers: 4, For: time.Minute}, Quick: lab.Size{Workers: 4, For: 15 * time.Second},
		Flags: func(f *flag.FlagSet) { f.IntVar(&flags.orders, "orders", 50, "shop: orders a second") },
		Run:   openShop, Work: serve,
	}
	speedScenario = lab.Scenario{
		Name: "speed", About: "measure: how fast a relay gives and an intake takes",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&flags.backlog, "backlog", 100_000,
				"speed: messages that are relayed, and taken in; a tenth with -quick")
			f.StringVar(&flags.profile, "cpuprofile", "",
				"speed: write the profile of the fastest relay to a file storage to this file")
		},
		Run: speed,
	}
	lagScenario = lab.Scenario{
		Name: "lag", About: "measure: how long after its commit a message is in the other database",
		Full: lab.Size{For: 15 * time.Second}, Quick: lab.Size{For: 5 * time.Second},
		Flags: func(f *flag.FlagSet) { f.IntVar(&flags.rate, "rate", 1000, "lag: messages a second") },
		Run:   lag,
	}
)

var flags struct {
	over, profile         string
	backlog, rate, orders int
}

func main() {
	cluster.RunNode() // neither returns in a node of a broker
	rabbit.RunNode()
	lab.Main(speedScenario, lagScenario, borderScenario, shopScenario, remoteScenario)
}
