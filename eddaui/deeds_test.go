package eddaui_test

import (
	"fmt"
	"net/url"

	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
)

func newID() saga.ID { return saga.ID(uuid.Must(uuid.NewV7())) }

// form returns a form of names and values.
func form(of ...string) url.Values {
	all := url.Values{}
	for n := 0; n+1 < len(of); n += 2 {
		all.Set(of[n], of[n+1])
	}
	return all
}

// letters adds dead letters of endpoint mails and returns the number of the last one, and their group.
func (st *stage) letters(n int, why string) (number int64, group string) {
	st.t.Helper()
	for range n {
		st.exec(`INSERT INTO :schema.dead_letter
			(endpoint, message_id, kind, header, body, attempts, conflicts, reason, error, error_group)
			VALUES ('mails', $1, 'mail.send', '{}', '{"Order":"1","Template":"x"}', 1, 0, 'attempts', $2,
				left(md5($2), 12))`, newID().String(), why)
	}
	return ask[int64](st, "SELECT max(id) FROM :schema.dead_letter"),
		ask[string](st, "SELECT error_group FROM :schema.dead_letter ORDER BY id DESC LIMIT 1")
}

// job adds a job that is not running, and returns its number.
func (st *stage) job(state string) int64 {
	st.t.Helper()
	return ask[int64](st, `INSERT INTO :schema.dead_letter_job
		(action, state, endpoint, kind, error_group, reason, last, plan)
		VALUES ('retry', $1, '', '', 'none', '', 0, '{1}') RETURNING id`, state)
}

// run adds a run of the manifest night/settle.
func (st *stage) run(state string) string {
	st.t.Helper()
	id := newID().String()
	st.exec(`INSERT INTO :schema.run (id, manifest_id, origin, state, due, ready)
		SELECT $1, id, 'manual', $2, clock_timestamp(), clock_timestamp()
		FROM :schema.manifest WHERE name = 'night/settle'`, id, state)
	return id
}

// waits returns a message that waits in an endpoint.
func (st *stage) waits(endpoint string) string {
	st.t.Helper()
	number := ask[int](st, "SELECT id FROM :schema.queue WHERE endpoint = $1", endpoint)
	id := newID().String()
	st.exec(fmt.Sprintf(`INSERT INTO :schema.queue_%d (id, due, kind, header, body)
		VALUES ('%s', now(), 'parcel.ship', '{}', '{}')`, number, id))
	return id
}

const (
	paused   = "SELECT paused_at IS NOT NULL FROM :schema.endpoint_setting WHERE endpoint = "
	queued   = "SELECT EXISTS (SELECT FROM :schema.queue_%d WHERE id = '%s')"
	pausedM  = "SELECT paused_at IS NOT NULL FROM :schema.manifest WHERE name = "
	timeouts = "SELECT %s FROM :schema.saga WHERE key = "
)

// deeds returns the actions of the test, by their names.
func (st *stage) deeds() map[string]func() deed {
	all := map[string]func() deed{}
	for _, some := range []map[string]func() deed{
		st.deedsOfEndpoints(), st.deedsOfLetters(), st.deedsOfInstances(), st.deedsOfCrowds(),
		st.deedsOfSchedules(), st.deedsOfTheRest(),
	} {
		for name, d := range some {
			all[name] = d
		}
	}
	return all
}

func (st *stage) deedsOfEndpoints() map[string]func() deed {
	const labels = "/endpoints/labels/"
	setting := func(is string) string {
		return "SELECT coalesce((SELECT " + is + " FROM :schema.endpoint_setting WHERE endpoint = 'labels'), false)"
	}
	limit := func(is string) string {
		return "SELECT coalesce((SELECT " + is + " FROM :schema.concurrency_limit WHERE name = 'labels'), false)"
	}
	return map[string]func() deed{
		"endpoint.pause": func() deed {
			return deed{path: labels + "pause", verb: "endpoint.pause", target: "labels",
				is: setting("paused_at IS NOT NULL AND reason = 'because of the test'")}
		},
		"endpoint.resume": func() deed {
			st.exec("UPDATE :schema.endpoint_setting SET paused_at = now() WHERE endpoint = 'labels'")
			return deed{path: labels + "resume", verb: "endpoint.resume", target: "labels",
				is: setting("paused_at IS NULL")}
		},
		"endpoint.workers": func() deed {
			return deed{path: labels + "workers", form: form("workers", "7"), verb: "endpoint.concurrency",
				is: setting("concurrency = 7")}
		},
		"endpoint.workers.reset": func() deed {
			st.exec("UPDATE :schema.endpoint_setting SET concurrency = 3 WHERE endpoint = 'labels'")
			return deed{path: labels + "workers/reset", verb: "endpoint.concurrency",
				is: setting("concurrency IS NULL")}
		},
		"endpoint.limit": func() deed {
			return deed{path: labels + "limit", form: form("most", "5"), verb: "limit.set", target: "labels",
				is: limit("slots = 5")}
		},
		"endpoint.limit.reset": func() deed {
			st.exec("UPDATE :schema.concurrency_limit SET declared = 9, operated = true WHERE name = 'labels'")
			return deed{path: labels + "limit/reset", verb: "limit.reset", target: "labels", is: limit("slots = 9")}
		},
		"history.set": func() deed {
			return deed{path: labels + "history", form: form("level", "steps", "sample", "10"), verb: "history.set",
				is: setting("history = 'steps' AND history_sample = 0.1")}
		},
		"message.send": func() deed {
			f := form("kind", "label.print", "body", "{\r\n\"N\": 1}", "delay", "1h")
			return deed{path: labels + "send", form: f, verb: "message.send", is: fmt.Sprintf(
				"SELECT count(*) > 0 FROM :schema.queue_%d WHERE kind = 'label.print' AND due > now()",
				ask[int](st, "SELECT id FROM :schema.queue WHERE endpoint = 'labels'"))}
		},
		"message.cancel": func() deed {
			id := st.waits("shipping")
			number := ask[int](st, "SELECT id FROM :schema.queue WHERE endpoint = 'shipping'")
			return deed{path: "/messages/" + id + "/cancel", form: form("endpoint", "shipping"), asks: "1",
				verb: "message.cancel", target: id, is: "SELECT NOT (" + fmt.Sprintf(queued, number, id)[7:] + ")"}
		},
	}
}

func (st *stage) deedsOfLetters() map[string]func() deed {
	left := func(where string, args ...any) string {
		return "SELECT NOT EXISTS (SELECT FROM :schema.dead_letter WHERE " + fmt.Sprintf(where, args...) + ")"
	}
	one := func(do, verb, asks string, form url.Values) func() deed {
		return func() deed {
			number, _ := st.letters(1, do)
			return deed{path: fmt.Sprintf("/dead/%d/%s", number, do), form: form, asks: asks, verb: verb,
				target: fmt.Sprint(number), is: left("id = %d", number)}
		}
	}
	many := func(do string, form url.Values) func() deed {
		return func() deed {
			_, group := st.letters(12, do+" of many")
			form.Set("group", group)
			return deed{path: "/dead/" + do, form: form, asks: "12", verb: "dead.job",
				is: left("error_group = '%s'", group)}
		}
	}
	job := func(do, state, verb, is string) func() deed {
		return func() deed {
			number := st.job(state)
			return deed{path: fmt.Sprintf("/jobs/%d/%s", number, do), verb: verb, target: fmt.Sprintf("job %d", number),
				is: fmt.Sprintf("SELECT state = '%s' FROM :schema.dead_letter_job WHERE id = %d", is, number)}
		}
	}
	return map[string]func() deed{
		"dead.retry":        one("retry", "dead.retry", "", nil),
		"dead.edit":         one("edit", "dead.edit", "", form("body", `{"Order": "2"}`, "set", "a=b\r\nc=d")),
		"dead.discard":      one("discard", "dead.discard", "1", nil),
		"dead.retry.many":   many("retry", form("way", "all at once", "rate", "1000")),
		"dead.edit.many":    many("edit", form("way", "all at once", "patch", `{"Template":"y"}`)),
		"dead.discard.many": many("discard", form()),
		"dead.note": func() deed {
			_, group := st.letters(1, "to be noted")
			return deed{path: "/dead/groups/" + group + "/note", form: form("note", " it's known:\r\nOPS-7 "),
				verb: "dead.note", target: "group " + group, is: `SELECT EXISTS (SELECT FROM :schema.audit
					WHERE verb = 'dead.note' AND after->>'note' = E'it''s known:\nOPS-7')`}
		},
		"dead.cancel": job("stop", "open", "dead.cancel", "cancelled"),
		"dead.resume": job("resume", "paused", "dead.resume", "done"),
		"dead.undo":   job("undo", "paused", "dead.undo", "cancelled"),
	}
}

// crowd starts instances of the saga crowd.
func (st *stage) crowd(keys ...string) {
	st.t.Helper()
	for _, key := range keys {
		st.exec(`INSERT INTO :schema.saga (iid, saga, key, version, state_version, state)
			VALUES ($1, 'crowd', $2, 1, 1, '{"N":7}')`, newID().String(), key)
	}
}

func (st *stage) deedsOfCrowds() map[string]func() deed {
	return map[string]func() deed{
		"saga.send.many": func() deed {
			st.crowd("sent")
			is := fmt.Sprintf(`SELECT EXISTS (SELECT FROM :schema.queue_%d q, :schema.saga s WHERE s.key = 'sent'
				AND strpos(convert_from(q.header, 'UTF8'), s.iid::text) > 0)`,
				ask[int](st, "SELECT id FROM :schema.queue WHERE endpoint = 'labels'"))
			f := form("prefix", "sen", "kind", "label.print", "body", "{}", "to", "labels")
			return deed{path: "/sagas/crowd/send", form: f, asks: "1", verb: "message.send", is: is}
		},
		"saga.end.many": func() deed {
			st.crowd("ended")
			return deed{path: "/sagas/crowd/end", form: form("prefix", "ende"), asks: "1", verb: "saga.end",
				target: "crowd/ended", is: "SELECT NOT EXISTS (SELECT FROM :schema.saga WHERE key = 'ended')"}
		},
		"saga.export": func() deed {
			st.crowd("exported")
			return deed{path: "/sagas/crowd/export", form: form("prefix", "exp"), asks: "1", verb: "saga.export",
				target: "crowd", is: "SELECT EXISTS (SELECT FROM :schema.audit WHERE verb = 'saga.export')",
				file: `"key":"exported"`}
		},
	}
}

func (st *stage) deedsOfInstances() map[string]func() deed {
	instance := func(do, key, asks, verb, is string, fields ...string) func() deed {
		return func() deed {
			f := form(append([]string{"saga", "order", "key", key}, fields...)...)
			if f.Has("version") {
				f.Set("version", fmt.Sprint(ask[int64](st, "SELECT version FROM :schema.saga WHERE key = $1", key)))
			}
			target := "order/" + key
			if verb == "message.send" {
				target = ""
			}
			return deed{path: "/instance/" + do, form: f, asks: asks, verb: verb, target: target,
				is: "SELECT coalesce((SELECT " + is + " FROM :schema.saga WHERE key = '" + key + "'), true)"}
		}
	}
	const due = "(timeouts->0->>'due')::timestamptz"
	return map[string]func() deed{
		"saga.send": func() deed {
			d := instance("send", "2026-0012", "", "message.send", "", "kind", "order.note", "body", `{}`, "to",
				"orders", "delay", "1h")()
			d.is = fmt.Sprintf("SELECT EXISTS (SELECT FROM :schema.queue_%d WHERE due > now() AND kind = 'order.note')",
				ask[int](st, "SELECT id FROM :schema.queue WHERE endpoint = 'orders'"))
			return d
		},
		"saga.repair": instance("repair", "2026-0012", "1", "saga.repair", "state->>'Cents' = '5'", "version", "",
			"state", `{"Cents": 5, "Customer": "c", "Paid": false, "Reserved": true, "Checked": true, "Notes": []}`),
		"saga.patch": instance("patch", "2026-0013", "1", "saga.repair",
			"state->>'Paid' = 'true' AND state->>'Customer' = 'customer 13'", "version", "", "patch", `{"Paid": true}`),
		"saga.end": instance("end", "2026-0014", "1", "saga.end", "false", "version", ""),
		"timeout.fire": instance("timeout/fire", "2026-0015", "1", "timeout.fire", due+" <= now()", "name",
			"payment"),
		"timeout.move": instance("timeout/move", "2026-0016", "", "timeout.move",
			due+" - now() BETWEEN interval '47 hours' AND interval '48 hours'", "name", "payment", "at", "48h"),
		"timeout.cancel": instance("timeout/cancel", "2026-0011", "1", "timeout.cancel",
			"timeouts IS NULL OR jsonb_array_length(timeouts::jsonb) = 0", "name", "payment"),
	}
}

func (st *stage) deedsOfSchedules() map[string]func() deed {
	const nightly, group = "/manifests/night%2Fsettle/", "/groups/reports/"
	manifest := func(is string) string {
		return "SELECT " + is + " FROM :schema.manifest WHERE name = 'night/settle'"
	}
	ofGroup := func(is string) string {
		return "SELECT " + is + " FROM :schema.manifest_group WHERE name = 'reports'"
	}
	st.exec("INSERT INTO :schema.manifest_group (name) VALUES ('reports')")
	st.exec("UPDATE :schema.manifest SET group_id = (SELECT id FROM :schema.manifest_group)")
	ofRun := func(do, before, verb, asks, after string) func() deed {
		return func() deed {
			id := st.run(before)
			return deed{path: "/runs/" + id + "/" + do, verb: verb, target: id, asks: asks,
				is: fmt.Sprintf("SELECT state = '%s' FROM :schema.run WHERE id = '%s'", after, id)}
		}
	}
	return map[string]func() deed{
		"manifest.trigger": func() deed {
			return deed{path: nightly + "trigger", form: form("body", `{"Batch": 9}`, "delay", "1h", "priority", "3"),
				verb: "manifest.trigger", target: "night/settle",
				is: `SELECT EXISTS (SELECT FROM :schema.run
					WHERE convert_from(body, 'UTF8') = '{"Batch":9}' AND priority = 3)`}
		},
		"manifest.pause": func() deed {
			return deed{path: nightly + "pause", verb: "manifest.pause", target: "night/settle",
				is: manifest("paused_at IS NOT NULL")}
		},
		"manifest.resume": func() deed {
			st.exec("UPDATE :schema.manifest SET paused_at = now() WHERE name = 'night/settle'")
			return deed{path: nightly + "resume", verb: "manifest.resume", target: "night/settle",
				is: manifest("paused_at IS NULL")}
		},
		"manifest.backfill": func() deed {
			return deed{path: nightly + "backfill", form: form("from", "96h", "until", "24h"), asks: "3",
				verb: "manifest.backfill", target: "night/settle",
				is: "SELECT count(*) = 3 FROM :schema.run WHERE origin = 'backfill'"}
		},
		"manifest.remove": func() deed {
			return deed{path: "/manifests/hourly%2Frates/remove", asks: "1", verb: "manifest.remove",
				target: "hourly/rates",
				is:     "SELECT orphaned_at IS NOT NULL FROM :schema.manifest WHERE name = 'hourly/rates'"}
		},
		"group.pause": func() deed {
			return deed{path: group + "pause", verb: "group.pause", target: "reports",
				is: ofGroup("paused_at IS NOT NULL")}
		},
		"group.resume": func() deed {
			st.exec("UPDATE :schema.manifest_group SET paused_at = now()")
			return deed{path: group + "resume", verb: "group.resume", target: "reports",
				is: ofGroup("paused_at IS NULL")}
		},
		"group.set": func() deed {
			return deed{path: group + "set", form: form("max", "2", "priority", "4", "strict", "yes"),
				verb: "group.set", target: "reports",
				is: ofGroup("coalesce(most = 2 AND priority = 4 AND strict, false)")}
		},
		"group.cancel": func() deed {
			st.exec("DELETE FROM :schema.run")
			id := st.run("queued")
			st.exec("UPDATE :schema.run SET group_id = (SELECT id FROM :schema.manifest_group)")
			return deed{path: group + "cancel", asks: "1", verb: "group.cancel", target: "reports",
				is: fmt.Sprintf("SELECT state = 'cancelled' FROM :schema.run WHERE id = '%s'", id)}
		},
		"run.retry":  ofRun("retry", "cancelled", "run.retry", "", "queued"),
		"run.cancel": ofRun("cancel", "queued", "run.cancel", "1", "cancelled"),
	}
}

func (st *stage) deedsOfTheRest() map[string]func() deed {
	limit := func(is string) string {
		return "SELECT " + is + " FROM :schema.concurrency_limit WHERE name = 'mails'"
	}
	return map[string]func() deed{
		"limit.set": func() deed {
			return deed{path: "/limits/mails/set", form: form("most", "6"), verb: "limit.set", target: "mails",
				is: limit("slots = 6")}
		},
		"limit.reset": func() deed {
			st.exec("UPDATE :schema.concurrency_limit SET declared = 8, operated = true WHERE name = 'mails'")
			return deed{path: "/limits/mails/reset", verb: "limit.reset", target: "mails", is: limit("slots = 8")}
		},
		"lease.resign": func() deed {
			st.exec(`INSERT INTO :schema.lease (name, holder, epoch, acquired, renewed, expires)
				VALUES ('singleton/rates', 'a', 1, now(), now(), now() + interval '1 hour')`)
			return deed{path: "/leases/singleton%2Frates/resign", verb: "lease.resign", target: "singleton/rates",
				is: "SELECT coalesce(resign = epoch, false) FROM :schema.lease WHERE name = 'singleton/rates'"}
		},
		"outbox.replay": func() deed {
			id := newID()
			st.exec(`INSERT INTO :schema.outbox (slot, endpoint, relayed, id, sent, kind, header, body)
				SELECT slot, 'shop.events', now(), $1, now(), 'order.shipped', '{}', '{}' FROM :schema.ring
				WHERE name = 'outbox'`, id.String())
			number := ask[int](st, "SELECT id FROM :schema.queue WHERE endpoint = 'shop.events'")
			return deed{path: "/border/shop.events/replay", form: form("since", "1h"), asks: "1", verb: "outbox.replay",
				target: "shop.events", is: fmt.Sprintf(queued, number, id)}
		},
		"keep.set": func() deed {
			return deed{path: "/kept/outbox/keep", form: form("keep", "30h"), verb: "outbox.keep",
				is: "SELECT keep = interval '30 hours' FROM :schema.ring WHERE name = 'outbox'"}
		},
	}
}
