package whereabouts_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

func shopBus(pool *pgxpool.Pool, schema string) (*bus.Bus, error) {
	// page options
	b, err := bus.New(pool, bus.Options{
		// ...
		History: history.Options{Level: history.States, Sample: 0.1}, // every tenth conversation, with states
		// end
		Schema: schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler),
	})
	return b, err
}

// page where

// where returns the place of a message, in a sentence for each endpoint that it was sent to.
func where(ctx context.Context, o *operate.Operator, id saga.ID) (sentences []string, err error) {
	m, err := o.History().Message(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, p := range m.Places {
		sentences = append(sentences, p.Says())
	}
	return sentences, nil
}

// story describes an instance in a line for each version, whether it lives or has ended.
func story(ctx context.Context, o *operate.Operator, name, key string) (lines []string, err error) {
	lives, err := o.History().Lives(ctx, name, key, 1) // the newest
	if err != nil || len(lives) == 0 {
		return nil, err
	}
	versions, _, err := o.History().Timeline(ctx, lives[0], saga.ID{}, 20)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		line := fmt.Sprintf("version %d %s", v.Version, history.Diff(v.Before, v.State))
		for _, e := range v.Entries {
			line += fmt.Sprintf(", %s %s", e.Info.Kind, e.Fate)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// end

// The code of the guide's page runs, and gives the results that the page shows.
func TestPageOfTheGuide(t *testing.T) {
	w := newWorld(t, bus.Options{})
	if _, err := shopBus(w.pool, w.schema); err != nil {
		t.Fatal(err)
	}
	w.startShop(saga.Pessimistic, never)
	id := w.send(place{Order: "7"})
	var lines []string
	w.until("the card is charged", func() (ok bool) {
		var err error
		if lines, err = story(t.Context(), w.op, "order", "7"); err != nil {
			t.Fatal(err)
		}
		return len(lines) == 2 && lines[1] == "version 2 Paid: false → true, card.paid handled"
	}, func() string { return fmt.Sprint(lines) })
	if sentences, err := where(t.Context(), w.op, id); err != nil || len(sentences) != 1 ||
		anyTime.ReplaceAllString(sentences[0], "TIME") != "orders handled it at TIME, and began order 7." {
		t.Errorf("%q, %v", sentences, err)
	}
	if lines, err := story(t.Context(), w.op, "order", "8"); err != nil || lines != nil {
		t.Errorf("%q, %v", lines, err)
	}
}
