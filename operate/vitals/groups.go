package vitals

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// deadLetters reads at most 10,000 groups of dead letters, without counting their letters.
func (r *Reader) deadLetters(ctx context.Context) (groups []recoverability.LetterGroup, err error) {
	err = r.look(ctx, func(tx pgx.Tx) error {
		filter := recoverability.GroupFilter{CountTo: 1}
		for {
			page, next, err := r.letters.Groups(ctx, tx, filter)
			if err != nil {
				return err
			}
			groups = append(groups, page...)
			if filter.After = next; next == "" || len(groups) >= knownGroups {
				return nil
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("look for new groups of dead letters: %w", pgerr.Explain(err))
	}
	return groups, nil
}

// lookForGroups raises an alarm for each group that did not exist at the last Read.
func (w *watching) lookForGroups(ctx context.Context, at time.Time) error {
	found, err := w.Reader.deadLetters(ctx)
	if err != nil {
		return err
	}
	known, first := w.groups, w.groups == nil
	w.groups = make(map[string]bool, len(found))
	fresh := 0
	for _, g := range found {
		w.groups[g.Name] = true
		if known[g.Name] || first && g.First.Before(at.Add(-2*w.Every)) {
			continue
		}
		if fresh++; fresh <= newGroups {
			w.Logger.WarnContext(ctx, "edda: a new group of dead letters", "group", g.Name, "endpoint", g.Endpoint,
				"kind", g.Kind, "letter", g.Example, "reason", g.Reason, "error", g.Error)
			w.give(Alarm{At: at, Vital: vitalOf(g)})
		}
	}
	if fresh > newGroups {
		w.Logger.WarnContext(ctx, "edda: more new groups of dead letters", "groups", fresh-newGroups)
		w.give(Alarm{At: at, Vital: Vital{Name: DeadLetters, Subject: "more groups", Level: Bad,
			Sentence: says("%s more groups of dead letters are new.", number(int64(fresh-newGroups))),
			Do:       "edda dead group"}})
	}
	return nil
}

func vitalOf(g recoverability.LetterGroup) Vital {
	return Vital{
		Name: DeadLetters, Subject: "group " + g.Name, Level: Bad,
		Sentence: says("messages of kind %s become dead letters in endpoint %s for a reason that is new (%s).",
			quote(g.Kind), quote(g.Endpoint), g.Reason),
		Do: fmt.Sprintf("edda dead show %d; edda dead list --group %s; see docs/operate/recoverability.md", g.Example,
			g.Name),
	}
}
