package delivery

import (
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/jackc/pgx/v5"
)

// PageID gives the transaction's history an id.
func (e *Effects) PageID() {
	if e.Record != nil && e.Record.ID.IsZero() {
		e.Record.ID = e.In.To.NewID()
	}
}

func (e *Effects) queueHistory(pipeline *pgx.Batch) {
	r := e.Record
	if r == nil {
		return
	}
	e.PageID()
	r.Endpoint = e.In.To.Name
	states := history.Proto.Level != "steps"
	bodies := history.Proto.Level == "bodies"
	for _, m := range e.In.Messages {
		if m.Fate == FateLeft || m.Fate == FateMoved {
			continue
		}
		info := &m.Delivery.Info
		c := info.ConversationID
		if c.IsZero() {
			c = info.ID
		}
		if !history.Wanted(c) {
			continue
		}
		hm := history.Message{Info: info, Took: m.Step.Took, Instance: -1, Gone: m.Step.Gone}
		if bodies {
			hm.Body = m.Delivery.Body
		}
		switch m.Fate {
		case FateDone:
			hm.Fate = history.Handled
		case FateAgain:
			hm.Fate = history.Retried
		case FateDead:
			hm.Fate = history.Dead
		case FateDropped:
			hm.Fate = history.Discarded
		}
		if m.Err != nil {
			hm.Err = deadletter.ErrorText(m.Err)
		}
		if i := m.Instance; i != nil && m.Fate == FateDone && i.Session != nil {
			if i.place == 0 {
				in, err := i.Session.Instance()
				if err == nil {
					v := history.Version{ID: in.ID, Saga: in.Saga, Key: in.Key, Version: in.Version + 1, Life: 'c', Page: i.Row.History}
					if states {
						v.State, v.Before = in.State, i.Before
					}
					r.Versions = append(r.Versions, v)
					i.place = len(r.Versions)
				}
			}
			hm.Instance = i.place - 1
		}
		r.Messages = append(r.Messages, hm)
		r.Outs = append(r.Outs, m.Step.Out)
	}
	r.Queue(pipeline, e.In.To.Schema, e.In.Now)
}
