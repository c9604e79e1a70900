package outbox

import (
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/jackc/pgx/v5"
)

// queueHistory queues a page with the fates of the messages of a pass. The page includes a message that an operator
// has removed from the queue in the meantime, because the other side has it nevertheless.
func (f *finisher) queueHistory(pipeline *pgx.Batch, messages []*message, now time.Time) {
	f.page.Begin(f.keeps(), now)
	for _, m := range messages {
		m.delivery.Info.ID, m.delivery.Info.Kind = m.ID, m.Kind // also for a message whose header could not be decoded
		a := history.Attempt{Info: &m.delivery.Info, Reason: m.reason, Fate: history.Relayed}
		switch m.fate {
		case fateDead:
			a.Fate = history.Died
		case fateDiscarded:
			a.Fate = history.Discarded
		default:
			if !f.page.Keeps(a.Info) {
				continue
			}
		}
		if m.err != nil {
			a.Err = deadletter.ErrorText(m.err)
		}
		f.page.Add(&a)
	}
	f.page.Queue(pipeline)
}

// queueHistory queues a page with the results of the ingested messages.
func (t *ingestTx) queueHistory(pipeline *pgx.Batch) {
	page := t.border.History.NewPage(t.options.Endpoint, newID)
	page.Begin(t.border.History.General, time.Now())
	for _, m := range t.all {
		a := history.Attempt{Info: &m.out.Info, Fate: history.Ingested}
		switch m.state {
		case Repeated:
			continue // an earlier page records its first arrival
		case IngestDead:
			a.Fate, a.Err = history.Died, deadletter.ErrorText(m.fault)
		case Unwanted:
			a.Fate, a.Reason = history.Discarded, "no endpoint is subscribed to its kind"
		default:
			if !page.Keeps(a.Info) {
				continue
			}
		}
		page.Add(&a)
	}
	page.Queue(pipeline)
}
