package main

import (
	"context"
	"os"
	"strings"

	"github.com/edda-go/edda/history"
	"github.com/jackc/pgx/v5/pgxpool"
)

type historyPeer struct {
	edda
	layout, level, sample string
}

func init() {
	add := func(name, layout, level, sample string) {
		register(name, historyPeer{layout: layout, level: level, sample: sample},
			Case{Workload: Step, Store: Optimistic}, Case{Workload: Step, Store: Pessimistic},
			Case{Workload: Hot, Store: Pessimistic, Processes: 1})
		order = append(order, name)
	}
	add("h-off", "", "", "")
	for _, layout := range []string{"a", "b", "c"} {
		for _, level := range []string{"steps", "states", "bodies"} {
			add("h-"+layout+"-"+level, strings.ToUpper(layout), level, "")
		}
		add("h-"+layout+"-steps10", strings.ToUpper(layout), "steps", "10")
	}
}

func (h historyPeer) set() {
	history.Proto.Layout, history.Proto.Level, history.Proto.Sample = h.layout, h.level, 0
	if h.sample != "" {
		history.Proto.Sample = 26
	}
}

func (h historyPeer) Prepare(ctx context.Context, db *pgxpool.Pool, c Case) error {
	history.Proto.Layout = ""
	if err := h.edda.Prepare(ctx, db, c); err != nil {
		return err
	}
	if sql := history.Tables(c.Schema(), h.layout); sql != "" {
		_, err := db.Exec(ctx, sql)
		return err
	}
	return nil
}

func (h historyPeer) Work(ctx context.Context, w *Worker) error {
	h.set()
	return h.edda.Work(ctx, w)
}

var _ = os.Getenv
