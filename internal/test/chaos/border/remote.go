package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill/jetstream"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/border/brokers"
	"github.com/edda-go/edda/internal/test/chaos/border/cluster"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/chaos/remote"
	"github.com/edda-go/edda/scheduler"
	runs "github.com/edda-go/edda/scheduler/remote"
)

// remoteScenario is internal/test/chaos/remote over JetStream.
var remoteScenario = remote.Way{
	Name: "jetstream", About: "runs that other programs do, over JetStream, with both sides and the broker killed",
	Open: openRuns, Here: submitRuns, There: doRuns,
}.Scenario()

const (
	runStream    = "runs"
	runTopic     = "runs.work"
	reportTopic  = "runs.reports"
	runConsumer  = "remote"
	runsAckWait  = 2 * time.Second // shorter than the slowest work: its message comes again meanwhile
	runsInHand   = 16
	runsWait     = time.Second // for the answer of the broker
	acksFirst    = 2           // of so many messages one is acked before its work
	mostAwayNode = 2 * time.Second
)

// openRuns starts a node, whose stream drops a UUID that comes again within two minutes.
func openRuns(ctx context.Context) (remote.Medium, error) {
	nodes, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return remote.Medium{}, err
	}
	err = nodes.CreateStream(ctx, runStream, cluster.StreamOptions{Subjects: []string{runTopic, reportTopic}})
	for _, topic := range []string{runTopic, reportTopic} {
		if err == nil {
			err = nodes.CreateConsumer(ctx, runStream, brokers.Consumer(runConsumer, topic),
				cluster.ConsumerOptions{Subject: topic, AckWait: runsAckWait, Push: true})
		}
	}
	if err != nil {
		return remote.Medium{}, errors.Join(err, nodes.Stop())
	}
	strike := func(ctx context.Context, l *lab.Lab) error {
		if err := l.Note(ctx, remote.Strike, "of the broker"); err != nil {
			return err
		}
		if err := nodes.Kill(0); err != nil {
			return err
		}
		if err := run.Sleep(ctx, l.Between(0, mostAwayNode)); err != nil {
			return err
		}
		return nodes.Restart(ctx, 0)
	}
	return remote.Medium{Address: nodes.URL(), Strike: strike, Close: nodes.Stop}, nil
}

// newRunPublisher makes a publisher. Its connection ends with the process.
func newRunPublisher(url string) (*jetstream.Publisher, error) {
	conn, err := jetstream.Connect(url)
	if err != nil {
		return nil, err
	}
	return jetstream.NewPublisher(conn, jetstream.PublisherOptions{AckWait: runsWait})
}

func submitRuns(kind string, at remote.Place, reports *scheduler.Reports, log *slog.Logger) (bus.Part, edda.Runner,
	error) {
	publisher, err := newRunPublisher(at.Address)
	if err != nil {
		return nil, nil, err
	}
	handle := runs.NewMessageHandler(reports, runs.HandlerOptions{Logger: log})
	submit := runs.Publish(kind, publisher, runs.PublishOptions{Topic: runTopic})
	return submit, listener{at.Address, reportTopic,
		func(_ context.Context, m *message.Message) {
			if handle(m) != nil {
				m.Nack()
				return
			}
			m.Ack()
		}}, nil
}

func doRuns(ctx context.Context, at remote.Place, do remote.Do) error {
	publisher, err := newRunPublisher(at.Address)
	if err != nil {
		return err
	}
	client := &runs.MessageClient{Publisher: publisher, Topic: reportTopic, Logger: slog.New(slog.DiscardHandler)}
	return listener{at.Address, runTopic, func(ctx context.Context, m *message.Message) {
		r, err := runs.RunOfMessage(m)
		if err != nil {
			panic(err) // nothing else is published
		}
		s := remote.Submission{Run: r, Key: m.Metadata.Get(runs.IdempotencyKey), Body: m.Payload}
		if m.UUID[len(m.UUID)-1]%acksFirst == 0 {
			m.Ack()
		}
		if do(ctx, s, client) != nil {
			m.Nack()
			return
		}
		m.Ack()
	}}.Run(ctx)
}

// listener works on the messages of a topic, several at a time.
type listener struct {
	url, topic string
	handle     func(context.Context, *message.Message)
}

// Run listens until ctx ends. While the broker is away it asks again, with a new subscriber: of one whose Subscribe has
// failed some subscriptions may be there.
func (l listener) Run(ctx context.Context) error {
	var subscriber message.Subscriber
	var messages <-chan *message.Message
	for {
		s, err := brokers.NewJetStreamSubscriber(l.url, brokers.ConsumerOf{Stream: runStream, Name: runConsumer,
			AckWait: runsAckWait, InHand: runsInHand}, nil)
		if err != nil {
			return err
		}
		if messages, err = s.Subscribe(context.WithoutCancel(ctx), l.topic); err == nil {
			subscriber = s
			break
		}
		_ = s.Close() // its connection may be away
		if run.Sleep(ctx, 100*time.Millisecond) != nil {
			return nil
		}
	}
	all := run.NewGroup(ctx)
	all.Go(func(ctx context.Context) error {
		<-ctx.Done()
		return subscriber.Close()
	})
	for range runsInHand {
		all.Go(func(ctx context.Context) error {
			for m := range messages {
				l.handle(ctx, m)
			}
			return nil
		})
	}
	return all.Wait()
}
