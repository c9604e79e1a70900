package main

import (
	"fmt"
	"iter"
	"math/rand/v2"
)

// sagaName is the name every peer gives the saga of these workloads.
const sagaName = "order"

// instances is how many orders the step workload spreads its messages over.
const instances = 10_000

// Charge is the incoming message: about 100 bytes as JSON.
type Charge struct {
	Order    string `json:"order"` // the correlation key
	Seq      int64  `json:"seq"`
	Amount   int64  `json:"amount"`
	Customer string `json:"customer"`
	Note     string `json:"note"`
}

// Kind is the stable name of Charge on the wire.
func (Charge) Kind() string { return "order.charge" }

// Charged is the outgoing message: about 100 bytes as JSON.
type Charged struct {
	Order  string `json:"order"`
	Seq    int64  `json:"seq"`
	Amount int64  `json:"amount"`
	Total  int64  `json:"total"`
	Steps  int64  `json:"steps"`
	Status string `json:"status"`
}

// Kind is the stable name of Charged on the wire.
func (Charged) Kind() string { return "order.charged" }

// Order is the state of one instance: 60 to 100 bytes as JSON.
// After a run the sums of Steps and Total must match the messages that were sent.
type Order struct {
	Steps    int64  `json:"steps"`
	Total    int64  `json:"total"`
	Last     int64  `json:"last"`
	Customer string `json:"customer"`
	Status   string `json:"status"`
}

// Apply is the step itself, the same few assignments for every peer.
func (o *Order) Apply(m Charge) Charged {
	o.Steps++
	o.Total += m.Amount
	o.Last = m.Seq
	o.Customer = m.Customer
	o.Status = "charged"
	return Charged{Order: m.Order, Seq: m.Seq, Amount: m.Amount, Total: o.Total, Steps: o.Steps, Status: o.Status}
}

// orderKey is the correlation key of the i-th instance.
func orderKey(i int) string { return fmt.Sprintf("order-%06d", i) }

// newOrder is the state every instance has before the first message.
func newOrder(i int) Order {
	return Order{Customer: fmt.Sprintf("customer-%04d", i), Status: "new"}
}

// Instances is how many orders exist before the run.
func (c Case) Instances() int {
	switch c.Workload {
	case Step, History, Traced, Viewed, Inbox:
		return instances
	}
	if c.Kept() {
		return instances
	}
	return 1
}

// Charges yields the messages of a run, the same ones for every peer and every round.
func (c Case) Charges() iter.Seq[Charge] {
	return func(yield func(Charge) bool) {
		random := rand.New(rand.NewPCG(1, 2))
		for seq := range c.N {
			i := random.IntN(c.Instances())
			m := Charge{Order: orderKey(i), Seq: int64(seq), Amount: int64(seq%97 + 1),
				Customer: fmt.Sprintf("customer-%04d", i), Note: "second instalment"}
			if !yield(m) {
				return
			}
		}
	}
}

// Wanted returns the effects that the database must hold once every message of the run was handled exactly once.
func (c Case) Wanted() Effects {
	if c.Workload == Latency || c.Workload == Leased || c.Workload == Relay {
		return Effects{} // the stopwatch counts, or the handlers do, or forward
	}
	want := Effects{Sent: int64(c.N), Steps: int64(c.N)}
	for m := range c.Charges() {
		want.Total += m.Amount
	}
	want.SentTotal = want.Total
	return want
}
