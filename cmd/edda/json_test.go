package main

import (
	"encoding/json"
	"time"

	"github.com/edda-go/edda/saga"
)

// The JSON that programs read with --json.

type queueJSON struct {
	Endpoint  string     `json:"endpoint"`
	Ready     int64      `json:"ready"`
	Delayed   int64      `json:"delayed"`
	Claimed   int64      `json:"claimed"`
	Parked    int64      `json:"parked"`
	Capped    bool       `json:"capped"`
	OldestDue *time.Time `json:"oldest_due"`
	Lag       float64    `json:"lag_seconds"`
	Relay     bool       `json:"relay"`
	Kinds     []string   `json:"kinds"`
}

type messageJSON struct {
	ID           saga.ID           `json:"id"`
	Kind         string            `json:"kind"`
	Due          time.Time         `json:"due"`
	Ready        bool              `json:"ready"`
	Sent         *time.Time        `json:"sent"`
	Expires      *time.Time        `json:"expires"`
	Attempt      int               `json:"attempt"`
	Conflicts    int               `json:"conflicts"`
	FirstFailed  *time.Time        `json:"first_failed"`
	LastError    string            `json:"last_error"`
	Intent       string            `json:"intent"`
	From         string            `json:"from"`
	Conversation saga.ID           `json:"conversation"`
	Instance     *saga.ID          `json:"instance"`
	Headers      map[string]string `json:"headers"`
	HeaderError  string            `json:"header_error,omitempty"`
	Size         int               `json:"size"`
	Truncated    bool              `json:"truncated"` // the shown part is shorter than the body
	body
}

type foundJSON struct {
	Endpoint string `json:"endpoint"`
	messageJSON
	Lane         string     `json:"lane"` // of this key, if an earlier message of the key parks it
	Claims       int        `json:"claims"`
	Holder       *saga.ID   `json:"holder"`
	WasDue       *time.Time `json:"was_due"`
	Cancelled    string     `json:"cancelled"`
	Crashes      int        `json:"crashes"`
	CrashesAlone int        `json:"crashes_alone"`
}

type instanceJSON struct {
	Saga            string          `json:"saga"`
	Key             string          `json:"key"`
	ID              saga.ID         `json:"id"`
	Version         int64           `json:"version"`
	StateVersion    int             `json:"state_version"`
	Started         time.Time       `json:"started"`
	Changed         time.Time       `json:"changed"`
	RememberedUntil *time.Time      `json:"remembered_until"`
	Timeouts        []timeoutJSON   `json:"timeouts"`
	Originator      *originatorJSON `json:"originator"`
	RowError        string          `json:"row_error,omitempty"`
	State           json.RawMessage `json:"state,omitempty"`
}

type timeoutJSON struct {
	Name string    `json:"name"`
	Kind string    `json:"kind"`
	Due  time.Time `json:"due"`
	ID   saga.ID   `json:"id"`
}

type originatorJSON struct {
	Endpoint string  `json:"endpoint"`
	Message  saga.ID `json:"message"`
}

type letterJSON struct {
	Number      int64             `json:"number"`
	Died        time.Time         `json:"died"`
	Endpoint    string            `json:"endpoint"`
	Message     saga.ID           `json:"message"`
	Kind        string            `json:"kind"`
	Attempts    int               `json:"attempts"`
	Conflicts   int               `json:"conflicts"`
	Reason      string            `json:"reason"`
	Error       string            `json:"error"`
	Group       string            `json:"group"`
	Sent        *time.Time        `json:"sent"`
	FirstFailed *time.Time        `json:"first_failed"`
	Headers     map[string]string `json:"headers"`
	HeaderError string            `json:"header_error,omitempty"`
	Size        *int              `json:"size,omitempty"` // show only
	body
}

type groupJSON struct {
	Group    string    `json:"group"`
	Endpoint string    `json:"endpoint"`
	Kind     string    `json:"kind"`
	Count    int64     `json:"count"`
	Capped   bool      `json:"capped"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Example  int64     `json:"example"`
	Reason   string    `json:"reason"`
	Error    string    `json:"error"`
	Note     *struct {
		Text string    `json:"text"`
		By   string    `json:"by"`
		At   time.Time `json:"at"`
	} `json:"note"`
}

type jobJSON struct {
	Job     int64     `json:"job"`
	Action  string    `json:"action"`
	State   string    `json:"state"`
	Ended   int64     `json:"ended"`
	Kept    int64     `json:"kept"`
	Undone  int64     `json:"undone"`
	Error   string    `json:"error"`
	To      string    `json:"to"`
	Plan    []int     `json:"plan"`
	Stage   int       `json:"stage"`
	Patch   any       `json:"patch"`
	Filter  string    `json:"filter"`
	Rate    float64   `json:"rate"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
}

type endpointJSON struct {
	Endpoint    string     `json:"endpoint"`
	Paused      bool       `json:"paused"`
	PausedAt    *time.Time `json:"paused_at"`
	Reason      string     `json:"reason"`
	Concurrency *int       `json:"concurrency"` // null means the number of each program
	Relay       bool       `json:"relay"`
}

type leaseJSON struct {
	Name      string     `json:"name"`
	Holder    string     `json:"holder"`
	Epoch     int64      `json:"epoch"`
	Held      bool       `json:"held"`
	Resigning bool       `json:"resigning"`
	Acquired  *time.Time `json:"acquired"`
	Renewed   *time.Time `json:"renewed"`
	Expires   *time.Time `json:"expires"`
	ExpiresIn float64    `json:"expires_in_seconds"` // 0 when no process holds it
}

type limitJSON struct {
	Name     string     `json:"name"`
	Limit    int        `json:"limit"`
	Held     int        `json:"held"`
	Draining int        `json:"draining"`
	Waiting  int        `json:"waiting"`
	Oldest   *time.Time `json:"oldest"`
	Waited   float64    `json:"waited_seconds"`
	Declared int        `json:"declared"` // 0 when no program has declared one
	SetBy    string     `json:"set_by"`   // "program" or "operator"
}

type manifestJSON struct {
	Manifest      string          `json:"manifest"`
	Owner         string          `json:"owner"`
	State         string          `json:"state"`
	Schedule      string          `json:"schedule"`
	Due           *time.Time      `json:"due"`
	Group         string          `json:"group"`
	Priority      int             `json:"priority"`
	Kind          string          `json:"kind"`
	Parent        string          `json:"parent"`
	Version       int64           `json:"version"`
	Definition    json.RawMessage `json:"definition"`
	Overlap       bool            `json:"overlap"`
	Retries       int             `json:"retries"`
	RetryDelay    float64         `json:"retry_delay_seconds"`
	MaxRetryDelay float64         `json:"retry_most_seconds"`
	RunTimeout    *float64        `json:"run_timeout_seconds"` // null is none
	Stopped       bool            `json:"stopped"`
	Paused        *time.Time      `json:"paused"`
	Reason        string          `json:"reason"`
	GroupPaused   *time.Time      `json:"group_paused"`
	Orphaned      *time.Time      `json:"orphaned"`
	Run           *saga.ID        `json:"run"`
	Held          *saga.ID        `json:"held"`
	Successes     int64           `json:"successes"`
	Fired         *time.Time      `json:"fired"`
	Succeeded     *time.Time      `json:"succeeded"`
	Created       time.Time       `json:"created"`
	Changed       time.Time       `json:"changed"`
	Waits         []string        `json:"waits"`
	Size          *int            `json:"size,omitempty"` // show only
	body
}

type attemptJSON struct {
	Attempt int        `json:"attempt"`
	Message saga.ID    `json:"message"`
	Sent    time.Time  `json:"sent"`
	Began   *time.Time `json:"began"`
	Worker  string     `json:"worker"`
	Ended   *time.Time `json:"ended"`
	Outcome string     `json:"outcome"`
	Error   string     `json:"error"`
}

type runJSON struct {
	Run      saga.ID       `json:"run"`
	Manifest string        `json:"manifest"`
	Group    string        `json:"group"`
	Origin   string        `json:"origin"`
	State    string        `json:"state"`
	Due      time.Time     `json:"due"`
	Ready    time.Time     `json:"ready"`
	Queued   time.Time     `json:"queued"`
	Ended    *time.Time    `json:"ended"`
	Priority int           `json:"priority"`
	Kind     string        `json:"kind"`
	Attempt  int           `json:"attempt"`
	Refused  int           `json:"refused"`
	Message  *saga.ID      `json:"message"`
	Deadline *time.Time    `json:"deadline"`
	Beat     *time.Time    `json:"beat"`
	Error    string        `json:"error"`
	Note     string        `json:"note"`
	Attempts []attemptJSON `json:"attempts,omitempty"` // show only, as are size and body
	Size     *int          `json:"size,omitempty"`
	body
}

type keptJSON struct {
	Endpoint string     `json:"endpoint"`
	ID       saga.ID    `json:"id"`
	Kind     string     `json:"kind"`
	Sent     *time.Time `json:"sent"`
	Relayed  time.Time  `json:"relayed"`
	Size     int        `json:"size"`
	Header   string     `json:"header"`
	body
}

type body struct {
	Text   *string `json:"body,omitempty"`
	Base64 string  `json:"body_base64,omitempty"`
}
