package act

import (
	"context"
	"strconv"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/operate"
)

// Endpoint returns the forms of an endpoint.
func Endpoint(set operate.EndpointSettings, limit *operate.LimitInfo) []Form {
	name := set.Endpoint
	forms := []Form{Pausing(name, set.Paused)}
	if !set.Relay {
		workers := ""
		if set.Concurrency > 0 {
			workers = strconv.Itoa(set.Concurrency)
		}
		forms = append(forms, setWorkers.form(values{"endpoint", name, "workers", workers}))
		if workers != "" {
			forms = append(forms, resetWorkers.form(values{"endpoint", name}))
		}
		forms = append(forms, limitsOf(limitEndpoint, unlimitEndpoint, "endpoint", name, limit)...)
	}
	level := set.History.Level.String()
	return append(forms, keepHistory.form(values{"endpoint", name, "level", level}),
		sendTo.form(values{"endpoint", name}))
}

// Pausing returns the form that pauses an endpoint or a relay, or resumes it.
func Pausing(name string, paused bool) Form {
	if paused {
		return resumeEndpoint.form(values{"endpoint", name})
	}
	return pauseEndpoint.form(values{"endpoint", name})
}

func pageOfEndpoint(in Input) string { return "endpoints/" + segment(in.text("endpoint")) }

var pauseEndpoint = &Action{
	Name: "endpoint.pause", Pattern: "/endpoints/{endpoint}/pause", Rights: []Right{Pause}, Button: "Pause",
	Says: "Workers take no message from this endpoint until you resume it. They finish the messages that they are " +
		"handling, and new messages wait in the queue.",
	fields: []field{of("endpoint"), why}, page: pageOfEndpoint, done: "The endpoint was paused.",
	command: func(in Input) string { return in.because(shell("edda endpoint pause", in.text("endpoint"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Op.Endpoints().Pause(ctx, in.text("endpoint"), in.Reason())
	},
}

var resumeEndpoint = &Action{
	Name: "endpoint.resume", Pattern: "/endpoints/{endpoint}/resume", Rights: []Right{Pause}, Button: "Resume",
	Says:   "Workers take messages from this endpoint again. Its paused partitions are resumed too.",
	fields: []field{of("endpoint"), why},
	page:   pageOfEndpoint, done: "The endpoint was resumed.",
	command: func(in Input) string { return in.because(shell("edda endpoint resume", in.text("endpoint"))) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Op.Endpoints().Resume(ctx, in.text("endpoint"))
	},
}

var setWorkers = &Action{
	Name: "endpoint.workers", Pattern: "/endpoints/{endpoint}/workers", Rights: []Right{Limit}, Button: "Set workers",
	Says: "Sets the number of workers in each process of the endpoint. A process never has more workers than its " +
		"pool has connections.",
	fields: []field{of("endpoint"), {name: "workers", label: "Workers of each process", kind: number, must: true,
		least: 1, most: 10_000, example: "4"}, why},
	page: pageOfEndpoint, done: "The number of workers was set.",
	command: func(in Input) string {
		return in.because(shell("edda endpoint concurrency", in.text("endpoint"), in.text("workers")))
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Op.Endpoints().SetConcurrency(ctx, in.text("endpoint"), int(in.number("workers")))
	},
}

var resetWorkers = &Action{
	Name: "endpoint.workers.reset", Pattern: "/endpoints/{endpoint}/workers/reset", Rights: []Right{Limit},
	Button: "Reset workers", Says: "Each process uses the number of workers that its program sets.",
	fields: []field{of("endpoint"), why}, page: pageOfEndpoint, done: "The number of workers was reset.",
	command: func(in Input) string {
		return in.because(shell("edda endpoint concurrency", in.text("endpoint")) + " --reset")
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return Done{}, d.Op.Endpoints().ResetConcurrency(ctx, in.text("endpoint"))
	},
}

var keepHistory = &Action{
	Name: "history.set", Pattern: "/endpoints/{endpoint}/history", Rights: []Right{Admin}, Button: "Set history",
	Says: "Sets the level of the history from now on. Level steps: each attempt. Level states: also the state after " +
		"each version. Level bodies: also the bodies of messages. For an empty field the program decides.",
	fields: []field{of("endpoint"),
		{name: "level", label: "Level", kind: choice, choices: []string{"off", "steps", "states", "bodies"}},
		{name: "sample", label: "Percent of conversations", kind: number, least: 1, most: 100}, why},
	page: pageOfEndpoint, done: "The history of the endpoint was set.",
	command: func(in Input) string {
		c := shell("edda history set", in.text("endpoint"))
		if level := in.text("level"); level != "" {
			c += " " + level
		}
		switch sample := in.text("sample"); {
		case sample != "":
			c += " --sample " + words.Quoted(sample+"%")
		case in.text("level") == "":
			c += " --reset"
		}
		return in.because(c)
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		o := history.Options{Sample: float64(in.number("sample")) / 100}
		if level := in.text("level"); level != "" {
			o.Level, _ = history.ParseLevel(level) // the field is a choice
		}
		return Done{}, d.Op.Endpoints().SetHistory(ctx, in.text("endpoint"), o)
	},
}

var sendTo = &Action{
	Name: "message.send", Pattern: "/endpoints/{endpoint}/send", Rights: []Right{Send}, Button: "Send a message",
	Says: "Sends a message to this endpoint. You can cancel it while it waits. The effects of a handler cannot be " +
		"undone.",
	fields: append([]field{of("endpoint")}, letterOf...), page: pageOfEndpoint, done: "The message was sent.",
	command: func(in Input) string { return sendCommand(in) + " --to " + words.Quoted(in.text("endpoint")) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		return d.send(ctx, in, operate.OutgoingMessage{To: in.text("endpoint")})
	},
}

var ofEndpoints = []*Action{
	pauseEndpoint, resumeEndpoint, setWorkers, resetWorkers, limitEndpoint, unlimitEndpoint, keepHistory, sendTo,
}
