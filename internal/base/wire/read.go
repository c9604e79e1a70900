package wire

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/edda-go/edda/saga"
)

// ReadHeader fills i from a stored header. The caller has set i's ID, Kind and times. After ErrNewer or any other
// error i has the fields that could be read.
func ReadHeader(header []byte, i *saga.Info) error {
	r := reader{info: i, version: thisVersion}
	err := eachPair(header, r.pair)
	return r.end(err)
}

// ReadDelivery fills a stored message's Info, and reports whether a manifest emitted the message. If the header is
// cut off, it ignores the run: its attempt may be missing.
func ReadDelivery(header []byte, i *saga.Info) (fired bool, err error) {
	err = ReadHeader(header, i)
	if i.Firing == nil || errors.Is(err, ErrNewer) {
		return false, err
	}
	wrong := checkFire(i.Firing)
	fired = wrong == nil && !errors.Is(err, ErrNoObject)
	if err == nil {
		err = wrong
	}
	return fired, err
}

// checkFire returns an error for values that no scheduler writes into a header.
func checkFire(f *saga.Firing) error {
	if f.Run.IsZero() || f.Attempt < 1 || f.Attempt > math.MaxInt32 {
		return fmt.Errorf("it names run %s, attempt %d: want a run id, and an attempt of 1 or more", f.Run, f.Attempt)
	}
	return nil
}

// reader fills an Info from the names and values of a header.
type reader struct {
	info    *saga.Info
	version int
	related bool
	zone    string
	wrong   error // the first fault; a later name may still show that a newer program wrote the header
}

func (r *reader) pair(name, value string) {
	var err error
	i := r.info
	switch name {
	case nameVersion:
		r.version, err = readVersion(value)
	case nameIntent:
		i.Intent, err = readIntent(value)
	case nameFrom:
		i.From = value
	case nameCorrelation:
		i.CorrelationID, err = saga.ParseID(value)
	case nameConversation:
		i.ConversationID, err = saga.ParseID(value)
	case nameRelated:
		r.related = true
		i.RelatedTo, err = saga.ParseID(value)
	case nameInstance:
		i.Instance, err = saga.ParseID(value)
	case nameOrigin:
		i.Origin, err = saga.ParseID(value)
	case nameExpire:
		i.Expire, err = readExpire(value)
	case nameFireZone:
		r.zone = value
	case nameManifest, nameRun, nameRunAttempt, nameFireDue:
		err = readFire(i, name, value)
	default:
		i.AddHeader(name, value)
	}
	if err != nil && r.wrong == nil {
		r.wrong = fmt.Errorf("%s: %w", name, err)
	}
}

// end derives the ids that the writer left out. err is why the header could not be read to its end, or nil.
func (r *reader) end(err error) error {
	if r.version > thisVersion {
		return ErrNewer
	}
	deriveIDs(r.info, r.related)
	inZone(r.info.Firing, r.zone)
	if err != nil {
		return err
	}
	return r.wrong
}

func readIntent(value string) (saga.Intent, error) {
	for _, intent := range []saga.Intent{saga.Command, saga.Event, saga.Answer, saga.Timer} {
		if value == intent.String() {
			return intent, nil
		}
	}
	return 0, fmt.Errorf("%d bytes, want send, publish, reply or timeout", len(value))
}

func readVersion(value string) (int, error) {
	version, err := strconv.Atoi(value)
	if err != nil || version < 1 {
		return thisVersion, fmt.Errorf("%d bytes, want a number of 1 or more", len(value))
	}
	return version, nil
}

// Expired is the reason for discarding a message whose time is over.
const Expired = "expired"

// HasExpired reports whether the time of a message is over at the given time of the database's clock.
func HasExpired(i *saga.Info, at time.Time) bool { return i.Expire > 0 && at.Sub(i.Sent) >= i.Expire }

func readExpire(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%d bytes, want a duration above 0, such as 1m30s", len(value))
	}
	return d, nil
}

// deriveIDs derives the ids that AppendHeader leaves out.
func deriveIDs(i *saga.Info, related bool) {
	if i.ConversationID.IsZero() {
		i.ConversationID = i.ID
	}
	if i.CorrelationID.IsZero() {
		i.CorrelationID = i.ConversationID
	}
	if !related && i.ConversationID != i.ID {
		i.RelatedTo = i.ConversationID
	}
}

func readFire(i *saga.Info, name, value string) (err error) {
	if i.Firing == nil {
		i.Firing = &saga.Firing{Attempt: 1}
	}
	switch name {
	case nameManifest:
		i.Firing.Manifest = value
	case nameRun:
		i.Firing.Run, err = saga.ParseID(value)
	case nameRunAttempt:
		i.Firing.Attempt, err = strconv.Atoi(value)
	case nameFireDue:
		if i.Firing.Due, err = time.Parse(time.RFC3339Nano, value); err != nil {
			err = fmt.Errorf("%d bytes, want a time of the form %s", len(value), time.RFC3339Nano)
		}
	}
	return err
}

// inZone converts the due time of a firing to its zone. If this machine does not have the zone, or it means a
// different place here ("Local"), the time keeps its offset.
func inZone(fire *saga.Firing, zone string) {
	if fire == nil || fire.Due.IsZero() || zone == "" || zone == "Local" {
		return
	}
	if place, err := time.LoadLocation(zone); err == nil {
		fire.Due = fire.Due.In(place)
	}
}
