package main

import (
	"context"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
)

// History is step, and HistoryHot is hot, by edda at each level of its history. -run history is both.
const (
	History    = "history"
	HistoryHot = "history-hot"
)

// chronicle is edda with a history.
type chronicle struct {
	edda
	keeps history.Options
}

func init() {
	for name, keeps := range map[string]history.Options{
		"history-bodies":  {Level: history.Bodies},
		"history-states":  {Level: history.States},
		"history-steps":   {Level: history.Steps},
		"history-steps10": {Level: history.Steps, Sample: 0.1},
		"history-off":     {Level: history.Off},
	} {
		register(name, chronicle{keeps: keeps},
			Case{Workload: History, Store: Optimistic},
			Case{Workload: History, Store: Pessimistic},
			Case{Workload: HistoryHot, Store: Optimistic},
			Case{Workload: HistoryHot, Store: Pessimistic},
		)
	}
}

// Work is edda's, with a history.
func (h chronicle) Work(ctx context.Context, w *Worker) error {
	return h.work(ctx, w, bus.Options{History: h.keeps})
}
