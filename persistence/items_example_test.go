package persistence_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// page saga

// Survey asks guests, and ends when all have answered. It is the start message of a saga, and its state.
type Survey struct {
	Name   string
	Guests int
}

func (s *Survey) ask(ctx *saga.Context, m Survey) error {
	*s = m
	for guest := range m.Guests {
		ctx.Send(Question{Survey: m.Name, Guest: guest}) // its answer goes to the endpoint "answers"
	}
	ctx.Send(CountAnswers{Survey: m.Name, Guests: m.Guests}, saga.Delay(lookEvery))
	return nil
}

func (s *Survey) end(ctx *saga.Context, m AllAnswered) error {
	ctx.Publish(SurveyEnded{Name: s.Name, Happy: m.Happy})
	ctx.Complete()
	return nil
}

// end

// lookEvery is short, so that the test ends.
const lookEvery = 10 * time.Millisecond

type (
	Question struct {
		Survey string
		Guest  int
	}
	Answer       struct{ Survey, Guest, Mood string }
	CountAnswers struct {
		Survey string
		Guests int
	}
	AllAnswered struct {
		Survey string
		Happy  int
	}
	SurveyEnded struct {
		Name  string
		Happy int
	}
)

func (Survey) Kind() string       { return "survey.start" }
func (Question) Kind() string     { return "guest.question" }
func (Answer) Kind() string       { return "survey.answer" }
func (CountAnswers) Kind() string { return "survey.count-answers" }
func (AllAnswered) Kind() string  { return "survey.all-answered" }
func (SurveyEnded) Kind() string  { return "survey.ended" }

var surveys = saga.Define("survey", saga.Options{},
	saga.StartedBy(func(m Survey) string { return m.Name }, (*Survey).ask),
	saga.Handles(func(m AllAnswered) string { return m.Survey }, (*Survey).end))

// page handlers

// Moods keeps the answers of the guests of a survey.
type Moods struct{ *persistence.Items[string] }

func (moods Moods) keep(ctx *bus.Context, tx pgx.Tx, m Answer) error {
	_, err := moods.Add(ctx, tx, m.Survey, m.Guest, m.Mood) // a second answer of a guest adds nothing
	return err
}

func (moods Moods) count(ctx *bus.Context, tx pgx.Tx, m CountAnswers) error {
	n, err := moods.Count(ctx, tx, m.Survey)
	if err != nil {
		return err
	}
	if n < m.Guests {
		ctx.Send(m, saga.Delay(lookEvery)) // look again
		return nil
	}
	end := AllAnswered{Survey: m.Survey}
	for answer, err := range moods.All(ctx, tx, m.Survey) {
		if err != nil {
			return err
		}
		if answer.Value == "happy" {
			end.Happy++
		}
	}
	ctx.Send(end)
	_, err = moods.Clear(ctx, tx, m.Survey)
	return err
}

// end

func answerQuestion(ctx *bus.Context, _ pgx.Tx, m Question) error {
	answer := Answer{Survey: m.Survey, Guest: strconv.Itoa(m.Guest), Mood: "happy"}
	if m.Guest == 0 {
		answer.Mood = "bored"
	}
	ctx.Send(answer)
	return nil
}

func surveyEndpoints(b *bus.Bus, schema string) (runners []edda.Runner, err error) {
	add := func(e *bus.Endpoint, failed error) {
		runners = append(runners, e)
		if failed != nil {
			err = failed
		}
	}
	// page endpoints
	items, err := persistence.NewItems[string](schema, "mood")
	if err != nil {
		return nil, err
	}
	moods := Moods{items}
	add(bus.NewEndpoint(b, "surveys", bus.EndpointOptions{}, bus.Saga(surveys)))
	add(bus.NewEndpoint(b, "answers", bus.EndpointOptions{}, bus.HandleTx(moods.keep), bus.HandleTx(moods.count)))
	// end
	add(bus.NewEndpoint(b, "guests", bus.EndpointOptions{}, bus.HandleTx(answerQuestion)))
	return runners, err
}

// The survey of docs/guide/items.md ends with the answers of its guests, and leaves no item.
func TestSurveyOfThePage(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	owner := pgtest.Pool(t)
	ended := make(chan SurveyEnded, 10)
	b, err := bus.New(owner, bus.Options{Schema: schema.Name(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	runners, err := surveyEndpoints(b, schema.Name())
	if err != nil {
		t.Fatal(err)
	}
	press, err := bus.NewEndpoint(b, "press", bus.EndpointOptions{}, bus.HandleTx(
		func(_ *bus.Context, _ pgx.Tx, m SurveyEnded) error { ended <- m; return nil }))
	if err != nil {
		t.Fatal(err)
	}
	host, err := edda.NewHost(append(runners, press)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	if _, err := b.Send(t.Context(), Survey{Name: "food", Guests: 30}); err != nil {
		t.Error(err)
	}
	if m := <-ended; m.Happy != 29 || m.Name != "food" {
		t.Errorf("%+v", m)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	left := 0
	count := schema.Render("SELECT count(*) FROM :schema.saga_item")
	if err := pool.QueryRow(t.Context(), count).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d items are left, %v", left, err)
	}
}

func ExampleItems() {
	moods, err := persistence.NewItems[string]("", "mood")
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = Moods{moods} // whose methods handle messages
	// Output:
}
