package history

import (
	"testing"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// BenchmarkPage measures a page of 500 messages in the client, each for its own instance, and with one sent message.
func BenchmarkPage(b *testing.B) {
	const messages = 500
	state := []byte(`{"total":100,"steps":12,"last":"0198c0de-0000-7000-8000-000000000001","padding":"........"}`)
	out := []saga.Outgoing{{To: "sink", Body: state, Info: saga.Info{ID: at(9, 9), Kind: "order.charged"}}}
	infos := make([]saga.Info, messages)
	for n := range infos {
		infos[n] = saga.Info{ID: at(int64(n), byte(n)), Kind: "order.charge", Attempt: 1, Sent: noon}
	}
	for _, level := range []Level{Steps, States, Bodies} {
		b.Run(level.String(), func(b *testing.B) {
			p := newPage(Options{Level: level, Sample: 1})
			b.ReportAllocs()
			for b.Loop() {
				p.Begin(p.options, noon)
				for n := range infos {
					change := p.AddChange(&Change{ID: infos[n].ID, Saga: "order", Key: "order-000001", Version: 12,
						Kind: Changed, Previous: at(1, 1), Before: state, State: state})
					p.Add(&Attempt{Info: &infos[n], Fate: Handled, Change: change, Sent: out, Body: state})
				}
				p.Queue(&pgx.Batch{})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/messages, "ns/message")
			b.ReportMetric(float64(len(p.out.buf))/messages, "B/message")
		})
	}
}
