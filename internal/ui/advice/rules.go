package advice

import (
	"fmt"
	"math"

	"github.com/edda-go/edda/internal/ui/view"
)

// rules are asked in this order. The rules that find contention come before those that ask for it.
var rules = []rule{
	{symptom: "conflicts", number: "share of attempts that lost their save", threshold: manyConflicts, contends: true,
		value: subject.conflictShare, says: saysConflicts},
	{symptom: "start-races", number: "share of starts that came second", threshold: manyStartRaces, contends: true,
		value: func(s subject) float64 {
			return only(s.Saves.LostStarts >= fewestRaces, share(s.Saves.LostStarts, s.Saves.Starts+s.Saves.LostStarts))
		},
		says: func(s subject, value float64) string {
			return fmt.Sprintf("%s of its starts came second (%d of %d): several messages that may start an "+
				"instance arrive at once. "+
				"Let one earlier message start it, so that these find it and wait for its lock", percent(value),
				s.Saves.LostStarts, s.Saves.Starts+s.Saves.LostStarts)
		}},
	{symptom: "conflict-deaths", number: "messages that died of lost saves", threshold: 1, contends: true,
		value: func(s subject) float64 { return float64(s.Messages.DeadConflicts) },
		says: func(s subject, _ float64) string {
			return fmt.Sprintf("%s for no other reason than lost saves. Use edda dead retry, take the "+
				"Pessimistic store or raise EndpointOptions.MaxConflicts, and look at what else writes the table of "+
				"instances", view.Many(s.Messages.DeadConflicts, "message is a dead letter",
				"messages are dead letters"))
		}},
	{symptom: "lock-timeouts", number: "share of waits for an instance that ended without it",
		threshold: manyLockTimeouts, contends: true,
		value: func(s subject) float64 {
			return only(s.Waiting.Timeouts >= fewestTimeouts,
				share(s.Waiting.Timeouts, s.Waiting.Waits))
		},
		says: func(s subject, value float64) string {
			return fmt.Sprintf("%s of its waits for an instance of another server ended without it (%d of %d, %s "+
				"on average): somebody holds "+
				"instances for long. Its handlers take %s on average; look in pg_stat_activity for transactions "+
				"that are open and idle, "+
				"and raise saga.Options.LockWait only when they are meant to be", percent(value), s.Waiting.Timeouts,
				s.Waiting.Waits, shortSpan(mean(s.Waiting.Wait, s.Waiting.Waits)), shortSpan(s.handler()))
		}},
	{symptom: "waiting", number: "share of the batches' time spent waiting for instances", threshold: muchWaiting,
		contends: true,
		value:    func(s subject) float64 { return only(s.critical().Seconds() >= longCritical/10, s.waitShare()) },
		says:     saysWaiting},
	{symptom: "put-down", number: "share of the messages taken that were put down again", threshold: muchPutDown,
		contends: true,
		value:    subject.putDownShare, says: saysPutDown},
	{symptom: "critical-time", number: "seconds from send to commit, mean", threshold: longCritical,
		value: func(s subject) float64 {
			return only(float64(s.handler()+s.perBatch()) <= smallPart*float64(s.critical()), s.critical().Seconds())
		}, says: saysCritical},
	{symptom: "slow-handler", number: "milliseconds of a handler, mean", threshold: slowHandler,
		value: func(s subject) float64 { return only(s.Saga != "", float64(s.handler())/1e6) },
		says: func(s subject, _ float64) string {
			return fmt.Sprintf("its handlers take %s on average, and keep the instance to themselves meanwhile. A "+
				"saga reads and writes its state and "+
				"sends messages: move what talks to other systems, or computes for long, to a plain handler "+
				"that answers", shortSpan(s.handler()))
		}},
	{symptom: "large-state", number: "KiB of a state, mean", threshold: largeState,
		value: func(s subject) float64 { return share(s.Saves.StateBytes, s.Saves.Writes) / 1024 },
		says: func(s subject, value float64) string {
			return fmt.Sprintf("its states have %.0f KiB on average, and are read and written with every batch. "+
				"Keep what decisions need, store "+
				"the rest elsewhere and keep a reference", value)
		}},
	{symptom: "full-batches", number: "share of BatchMax that its batches handle, mean", threshold: fullBatches,
		value: func(s subject) float64 {
			return only(s.queue.Lag.Seconds() >= longLag &&
				s.BatchMax > 0, share(s.Messages.Steps, s.Saves.Batches)/float64(max(1, s.BatchMax)))
		},
		says: func(s subject, _ float64) string {
			return fmt.Sprintf("its batches are full (%.0f messages of %d) and its queue is %s behind: with "+
				"EndpointOptions.BatchMax at %d a commit serves more messages",
				share(s.Messages.Steps, s.Saves.Batches), s.BatchMax, shortSpan(s.queue.Lag), min(2*s.BatchMax, 5000))
		}},
	{symptom: "hot-instance", number: "messages of a batch for one instance, mean", threshold: hotInstance,
		value: func(s subject) float64 {
			return only(s.contended || s.queue.Lag.Seconds() >= longLag, share(s.Messages.Steps, s.Saves.Instances))
		},
		says: func(_ subject, value float64) string {
			return fmt.Sprintf("a batch has %.0f messages for one instance on average, so few instances have most "+
				"of the load. Divide the work of one among "+
				"√n sagas that each gather a part (chunks), or write items to rows of your own and let the saga "+
				"see the end only (docs/guide/hot-sagas.md)", math.Round(value))
		}},
	{symptom: "neighbours", number: "share of the endpoint's time", threshold: mostOfEndpoint,
		value: func(s subject) float64 { return only(s.contended && len(s.neighbours) > 0, s.endpointShare()) },
		says: func(s subject, value float64) string {
			return fmt.Sprintf("it takes %s of the time of endpoint %s, where others wait behind it: %s. Give it "+
				"an endpoint of its own", percent(value), s.Endpoint, s.names())
		}},
}

func saysConflicts(s subject, value float64) string {
	text := fmt.Sprintf("%s of its attempts lost the save to another server (%d of %d). ", percent(value),
		s.Messages.Conflicts, s.Messages.Steps+s.Messages.Conflicts)
	if s.Store == "optimistic" {
		return text + "With saga.Pessimistic a batch holds the instance before it steps, and none are lost"
	}
	return text + "It has the Pessimistic store already, so these are starts, or somebody else writes its rows"
}

func saysWaiting(s subject, value float64) string {
	return fmt.Sprintf("its batches spend %s of their time waiting for instances that other workers have (%s for "+
		"those of other servers, %s for those of "+
		"their own), while messages take %s to their commit. Look at the processors of the servers and of Postgres "+
		"first: where they are busy, waits are long because "+
		"everything is. Where they are idle, more processors, connections or servers do not help; messages of one "+
		"instance in one place do: one server, or "+
		"an endpoint whose messages are kept in order or partitioned by key", percent(value), shortSpan(s.Waiting.Wait),
		shortSpan(s.Waiting.Turn), shortSpan(s.critical()))
}

func saysPutDown(s subject, value float64) string {
	text := fmt.Sprintf("%s of the messages that were taken for it were put down, because their instance was in "+
		"other hands (%d of %d). ",
		percent(value), s.Messages.Busy+s.Messages.Queued, s.Messages.Taken)
	if s.Messages.Busy > s.Messages.Queued {
		return text + "Most of these hands are other servers': run its endpoint in fewer servers, or keep its " +
			"messages in order or partitioned by key"
	}
	if s.Concurrency > 2 {
		return text + fmt.Sprintf("Its workers get in each other's way: EndpointOptions.Concurrency of 2 instead "+
			"of %d does as much, for one instance at a time is all they have", s.Concurrency)
	}
	return text + "There are few instances at a time; more workers would not help"
}

func saysCritical(s subject, _ float64) string {
	text := fmt.Sprintf("a message takes %s from its send to its commit, of which its handler has %s and its batch "+
		"%s: it waits in the queue. ",
		shortSpan(s.critical()), shortSpan(s.handler()), shortSpan(s.perBatch()))
	const look = "Look at what the sessions of Postgres wait for (docs/operate/scaling.md, query 1). If few " +
		"are active, " +
		"add workers or servers. " +
		"If they wait for the locks transactionid or tuple, handlers change the same rows of yours, and more " +
		"servers would wait with them. Otherwise Postgres or its machine is the limit"
	switch {
	case s.contended && s.contention() >= mostOfWork:
		return text + "What keeps it there is the contention above, unless processors are busy"
	case s.contended:
		return text + fmt.Sprintf("The contention above costs %s of the work at most, which does not explain that. ",
			percent(s.contention())) + look
	case s.queue.Ready > int64(s.BatchMax):
		return text + view.Many(s.queue.Ready, "message is", "messages are") + " ready now. " + look
	}
	return text + "The queue is short now, so load comes in bursts. Accept it, or look at the next one while it " +
		"lasts (docs/operate/scaling.md, query 1)"
}
