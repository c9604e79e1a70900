package bus

import "context"

// What a message that keeps failing says of the other side: nothing, as long as it is alone. So after each Stuck failures in a row the messages
// behind it are tried one after another. If one goes through, the other side is well at that moment, and the stuck one is tried
// right behind it. When it has failed so three times, with no turn between in which nothing went through, it is the message that is
// not taken, and it is a dead letter. An other side that is away, or comes back at any moment, gives no such evidence, however long
// it lasts.
//
// Nothing overtakes a message that has failed less often than Stuck; of one that has, the messages behind it are tried only after
// itself in that very turn. So it is overtaken only when it is dead in the end, or when the other side came back between the two.

const (
	stuckProbes  = 10 // messages behind a stuck one that are tried in one turn
	stuckRefused = 3  // failures of it, each right behind a success
)

// stuck finds the first message that has failed so often that those behind it are asked, and these. through tells whether something
// went through in this turn: then nobody need be asked, and what is left behind it may be of its key.
func (r *relaying) stuck(messages []*message, through bool) (m *message, behind []*message) {
	for n, m := range messages {
		f := r.failing[m.id]
		if m.fate != left || m.err == nil || f == nil || f.attempts < r.options.Stuck {
			continue
		}
		if !through && f.refused == 0 && f.attempts%r.options.Stuck != 0 {
			return nil, nil
		}
		for _, other := range messages[n+1:] {
			if other.fate == left && !through && len(behind) < stuckProbes {
				behind = append(behind, other)
			}
		}
		return m, behind
	}
	return nil, nil
}

// tellStuck tries those behind m, and after each success m itself.
func (r *relaying) tellStuck(ctx context.Context, b *relayed, m *message, behind []*message, through bool) {
	f, well := r.failing[m.id], through
	for n := -1; n < len(behind); n++ {
		if n >= 0 {
			through, _ = r.try(ctx, b, behind[n:n+1])
		}
		if ctx.Err() != nil {
			return
		}
		if !through {
			continue
		}
		well = true
		if _, _ = r.try(ctx, b, []*message{m}); m.fate != left || ctx.Err() != nil {
			return // what is still behind it comes in its turn
		}
		if f.refused++; f.refused >= stuckRefused {
			r.giveUp(m, "stuck", m.err)
			return
		}
	}
	if !well && len(behind) > 0 {
		f.refused = 0
	}
}
