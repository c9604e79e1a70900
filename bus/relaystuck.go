package bus

import "context"

// What a message that keeps failing says of the other side: nothing, as long as it is alone. So when it has failed Stuck times the
// messages behind it are tried one after another. If one goes through, the other side is well at that moment, and the stuck
// one is tried right behind it. When it has failed so three times in a row it is the message that is not taken, and it is a dead
// letter. An other side that is away, or comes back at any moment, gives no such evidence, however long it lasts.

const (
	stuckProbes  = 10 // messages behind a stuck one that are tried in one turn
	stuckRefused = 3  // failures of it, each right behind a success
)

// stuck tells whether m has failed so often that those behind it are asked.
func (r *relaying) stuck(m *message) bool { return r.triedBefore(m) >= r.options.Stuck }

// tellStuck tries those behind messages[0], and after each success messages[0] itself.
func (r *relaying) tellStuck(ctx context.Context, b *relayed, messages []*message) {
	m, behind := messages[0], messages[1:min(len(messages), 1+stuckProbes)]
	f, well := r.failing[m.id], false
	for _, other := range behind {
		if ctx.Err() != nil || m.fate != left {
			return
		}
		if !r.try(ctx, b, []*message{other}) {
			continue
		}
		well = true
		if r.try(ctx, b, []*message{m}) || m.fate != left || ctx.Err() != nil {
			continue
		}
		if f.refused++; f.refused >= stuckRefused {
			r.giveUp(m, "stuck", m.err)
			return
		}
	}
	if well {
		return
	}
	if len(behind) > 0 {
		f.refused = 0
	}
	r.try(ctx, b, messages[:1])
}
