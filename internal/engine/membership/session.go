package membership

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

//go:embed membership.sql
var statements string

// Session registers this process for others: a row that lists the queues it runs, renewed every few seconds, and
// ended when the last endpoint has ended. The listening connection holds the row's advisory lock, so that other
// processes notice at once if this one dies. With PollOnly there is no such connection, and they notice it when the
// row expires.
//
// A death that a process has noticed puts the queues of the dead process into quarantine for a while, in every
// process. Safe for concurrent use.
type Session struct {
	options Options
	SQL     pg.Statements
	ID      saga.ID
	Host    string
	loops   *run.Shared // the loops that renew, and listen
	tried   time.Time   // when the lock was last tried in vain; belongs to the loop that listens

	quarantined atomic.Pointer[map[int]struct{}] // queues in quarantine; nil if there are no such queues
	gate        sync.RWMutex                     // batches of a process in quarantine share it, a suspect has it alone
	peers       atomic.Bool                      // there are other sessions
	news        run.Nudge                        // another process noticed a death

	LookFor time.Duration // how long LookAround may take; tests make it longer
	looking sync.Mutex    // guards looked: one worker checks for all
	looked  time.Time

	// has capacity 1: the goroutine that has put a value in writes the row, so that an end and a beginning cannot
	// overlap
	writing chan struct{}

	mu      sync.Mutex // guards all fields below
	running map[*member]struct{}
	holds   bool          // the lock is held
	ready   chan struct{} // closed while the lock is held and the row says so
	doubt   time.Time     // until then an apparent death may be our own lost connection
	over    []saga.ID     // batches that have ended, and are still in the journal
}

// member is an endpoint or a relay that is running.
type member struct {
	queue int
	left  func() int
}

const (
	sessionFor    = lease.Default // a session that was not renewed for this long is dead
	renewEvery    = 5 * time.Second
	renewTimeout  = 3 * time.Second
	quarantineFor = 10 * time.Minute // after the last death
	deathsEvery   = 100 * time.Millisecond
	deathsTimeout = 50 * time.Millisecond
	lockWait      = time.Second
	Kept          = time.Hour // a session's row is kept this long after its end
	diedPayload   = "died"    // of a notification
	watched       = 20        // sessions whose locks each renewal tries
)

// Options are the options of a Session. All are required.
type Options struct {
	Pool     *pg.Pool
	Schema   pg.Schema
	Routes   *queue.Router
	Hub      *wake.Hub
	Notifier *wake.Notifier
	Log      *slog.Logger
	Calm     *slog.Logger // for errors after which the work is tried again
	Outage   *pg.Outage
	NewID    func() saga.ID
	PollOnly bool // no process listens
}

// New returns a Session that has not begun.
func New(o Options) *Session {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // it is for people who read the log
	}
	s := &Session{
		options: o, SQL: pg.Load(statements, o.Schema), ID: o.NewID(), Host: host, news: run.NewNudge(),
		LookFor: deathsTimeout, writing: make(chan struct{}, 1), running: map[*member]struct{}{},
		ready: make(chan struct{}),
	}
	if s.loops = run.NewShared(s.keep, s.listen); o.PollOnly {
		s.loops = run.NewShared(s.keep)
	}
	o.Hub.Listen(diedPayload, func(string) { s.news.Send() })
	return s
}

// Join is called before an endpoint takes its first message, and leave after its last. When Join returns, it has
// looked for dead processes. Until leave is called the session is renewed, and this process listens for wake-ups.
// left returns how many functions of the program do not return, see run.Calls.
func (s *Session) Join(ctx context.Context, queue int, left func() int) (leave func(), err error) {
	m := &member{queue, left}
	s.mu.Lock()
	s.running[m] = struct{}{}
	s.mu.Unlock()
	if err := s.renew(ctx, renewal{within: renewTimeout, tryAll: true}); err != nil {
		s.leave(context.WithoutCancel(ctx), m)
		return nil, fmt.Errorf("begin a session: %w", pgerr.Explain(err))
	}
	stop := s.loops.Start(ctx)
	return func() {
		stop()
		s.leave(context.WithoutCancel(ctx), m)
	}, nil
}

func (s *Session) leave(ctx context.Context, m *member) {
	s.writing <- struct{}{} // a renewal has a deadline
	defer func() { <-s.writing }()
	s.mu.Lock()
	delete(s.running, m)
	last := len(s.running) == 0
	s.mu.Unlock()
	if !last {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	pipeline := &pgx.Batch{}
	s.queueOver(pipeline)
	pipeline.Queue(s.SQL.Get("end_session"), s.ID)
	if err := s.options.Pool.SendBatch(ctx, pipeline).Close(); err != nil {
		s.options.Log.Warn("edda: the session was not ended, so other processes will log a death", "session",
			s.ID.String(), "error", err)
	}
}

// keep renews the session until ctx ends, and at once when another process noticed a death.
func (s *Session) keep(ctx context.Context) error {
	for {
		if run.Wait(ctx, run.Jitter(renewEvery), s.news) == run.Ended {
			return nil
		}
		if err := s.renew(ctx, renewal{within: renewTimeout}); err != nil && ctx.Err() == nil {
			s.doubtFor(sessionFor)
			s.options.Calm.Warn("edda: the session was not renewed", "session", s.ID.String(), "error", err)
		}
	}
}

// renewal says how the session is renewed.
type renewal struct {
	within time.Duration
	tryAll bool // try the locks of all sessions, and not only those after ours
}

// Renew renews the session at once, without waiting for the next interval.
func (s *Session) Renew(ctx context.Context) error {
	return s.renew(ctx, renewal{within: renewTimeout})
}

// renew records that this process is alive, marks sessions that have died, and reads which queues are in quarantine.
func (s *Session) renew(ctx context.Context, r renewal) error {
	ctx, cancel := context.WithTimeout(ctx, r.within)
	defer cancel()
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return fmt.Errorf("wait for an earlier renewal: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	queues, left := s.queues()
	holds, trust := s.holds, time.Now().After(s.doubt)
	s.mu.Unlock()
	if len(queues) == 0 {
		return nil // it has ended, and must not begin again
	}
	sql, found := s.SQL, sighting{asked: queues, quarantined: map[int]time.Duration{}}
	pipeline := &pgx.Batch{}
	queue.Open(pipeline, nil)
	pipeline.Queue(sql.Get("lazily"))
	pipeline.Queue(sql.Get("renew_session"), s.ID, s.Host, os.Getpid(), queues, holds, sessionFor.Microseconds(),
		left)
	over := s.queueOver(pipeline)
	if trust {
		pipeline.Queue(sql.Get("bury_sessions"), s.ID, r.tryAll, watched).Query(found.readDead)
	}
	pipeline.Queue(sql.Get("peers"), s.ID).QueryRow(func(row pgx.Row) error { return row.Scan(&found.peers) })
	pipeline.Queue(sql.Get("quarantined_queues"), queues, quarantineFor.Microseconds()).Query(found.readQuarantine)
	if err := s.options.Pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	s.options.Outage.Over()
	s.mu.Lock()
	s.over = s.over[over:]
	s.mu.Unlock()
	s.learn(ctx, found)
	return nil
}

// queues returns the queues that this process runs, sorted, and for each how many functions of the program do not
// return. The caller holds mu.
func (s *Session) queues() (queues, left []int) {
	of := map[int]int{}
	for m := range s.running {
		of[m.queue] += m.left()
	}
	for _, queue := range slices.Sorted(maps.Keys(of)) {
		queues, left = append(queues, queue), append(left, of[queue])
	}
	return queues, left
}

// LeaveLater makes the next renewal, which is soon, remove a batch that has ended from the journal.
func (s *Session) LeaveLater(entered saga.ID) {
	s.mu.Lock()
	s.over = append(s.over, entered)
	s.mu.Unlock()
	s.news.Send()
}

func (s *Session) queueOver(pipeline *pgx.Batch) (over int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.over) > 0 {
		pipeline.Queue(s.SQL.Get("leave_batches"), UUIDs(s.over))
	}
	return len(s.over)
}

// sighting is the result of one renewal.
type sighting struct {
	peers       bool
	dead        []deadSession
	asked       []int                 // queues that this process runs
	quarantined map[int]time.Duration // remaining time of quarantine, for each queue of asked that is in quarantine
}

type deadSession struct {
	id     saga.ID
	host   string
	pid    int
	queues []int
}

func (f *sighting) readDead(rows pgx.Rows) error {
	var d deadSession
	_, err := pgx.ForEachRow(rows, []any{&d.id, &d.host, &d.pid, &d.queues}, func() error {
		f.dead = append(f.dead, d)
		d.queues = nil
		return nil
	})
	return err
}

func (f *sighting) readQuarantine(rows pgx.Rows) error {
	var queue int
	var remaining int64
	_, err := pgx.ForEachRow(rows, []any{&queue, &remaining}, func() error {
		f.quarantined[queue] = time.Duration(remaining) * time.Microsecond
		return nil
	})
	return err
}

// learn stores the result in this process, writes deaths and quarantines to the log, and notifies the other
// processes.
func (s *Session) learn(ctx context.Context, found sighting) {
	s.peers.Store(found.peers)
	var old, now map[int]struct{}
	if p := s.quarantined.Load(); p != nil {
		old = *p
	}
	if len(found.quarantined) > 0 {
		now = map[int]struct{}{}
		for queue := range found.quarantined {
			now[queue] = struct{}{}
		}
		s.quarantined.Store(&now)
	} else {
		s.quarantined.Store(nil)
	}
	log := s.options.Log
	for _, d := range found.dead {
		log.Warn("edda: a process died", "session", d.id.String(), "host", d.host, "pid", d.pid, "endpoints",
			s.names(d.queues))
	}
	for queue, remaining := range found.quarantined {
		if _, was := old[queue]; !was {
			log.Warn("edda: quarantine began", "endpoint", s.names([]int{queue})[0], "until",
				time.Now().Add(remaining).UTC())
		}
	}
	for queue := range old {
		// an endpoint that has stopped is not in asked, and its quarantine continues without it
		if _, is := now[queue]; !is && slices.Contains(found.asked, queue) {
			log.Info("edda: quarantine ended", "endpoint", s.names([]int{queue})[0])
		}
	}
	if len(found.dead) > 0 && !s.options.PollOnly {
		s.options.Notifier.Send(ctx, diedPayload)
	}
}

func (s *Session) names(queues []int) []string {
	known := s.options.Routes.Current()
	names := make([]string, len(queues))
	for i, id := range queues {
		names[i] = fmt.Sprintf("queue %d", id)
		if known != nil && known.ByID[id] != nil {
			names[i] = known.ByID[id].Endpoint
		}
	}
	return names
}

// doubtFor keeps this process from treating others as dead for a while: after a restart of Postgres no session holds
// its lock yet.
func (s *Session) doubtFor(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt = time.Now().Add(d)
}

// locked records in the row that the lock is held: from now on others notice at once if this process dies.
func (s *Session) locked(ctx context.Context) error {
	s.mu.Lock()
	s.holds = true
	s.mu.Unlock()
	if err := s.renew(ctx, renewal{within: renewTimeout}); err != nil {
		return fmt.Errorf("record that the session is locked: %w", err)
	}
	s.mu.Lock()
	close(s.ready)
	s.mu.Unlock()
	return nil
}

// unlock records in the row that the lock is not held, before its connection is closed. If ctx has not ended, the
// connection was lost.
func (s *Session) unlock(ctx context.Context) {
	s.mu.Lock()
	s.holds = false
	select {
	case <-s.ready:
		s.ready = make(chan struct{})
	default:
	}
	s.mu.Unlock()
	if ctx.Err() == nil {
		s.doubtFor(sessionFor)
	}
	if err := s.renew(context.WithoutCancel(ctx), renewal{within: lockWait}); err != nil {
		s.options.Log.Debug("edda: the session was not unlocked", "error", err) // a false alarm for the others
	}
}

// AwaitLock waits until others would notice at once if this process died, at most a second.
func (s *Session) AwaitLock(ctx context.Context) {
	if s.options.PollOnly {
		return
	}
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	run.Wait(ctx, lockWait, ready)
}

// LookAround looks for dead processes, on behalf of all workers and not too often. It is for a batch with messages
// that a different process had in hand before: that process may have died a millisecond ago.
//
// The batch's transaction stays open. So with PollOnly LookAround does nothing: behind a pooler it would wait for a
// second session while the batch holds one, and a death is only noticed when the dead session expires, which the
// renewals find out.
func (s *Session) LookAround(ctx context.Context) {
	if !s.peers.Load() || s.options.PollOnly {
		return
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	if time.Since(s.looked) < deathsEvery {
		return
	}
	s.looked = time.Now()
	if err := s.renew(ctx, renewal{within: s.LookFor, tryAll: true}); err != nil {
		s.options.Log.Debug("edda: dead processes were not read", "error", err) // the next renewal finds them
	}
}

// Owner is a session, and the server process that ran a batch of it; 0 if that was not recorded.
type Owner struct {
	Session saga.ID
	Backend int
}

// Dead reports which of the sessions belong to processes that died: their rows say so, or their lock is free, or they
// have expired. A session that holds no lock, as with PollOnly, counts as dead earlier, if the server process that
// ran its batch has ended. Our own session is never dead. While this process doubts its own connection, only deaths
// that other processes have recorded count.
func (s *Session) Dead(ctx context.Context, q queue.Pipeliner, owners []Owner) (map[saga.ID]bool, error) {
	var ids []saga.ID
	var backends []int
	for _, o := range owners {
		if o.Session != s.ID {
			ids, backends = append(ids, o.Session), append(backends, o.Backend)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	dead := map[saga.ID]bool{}
	pipeline := &pgx.Batch{}
	pipeline.Queue(s.SQL.Get("look_anew"))
	pipeline.Queue(s.SQL.Get("dead_sessions"), UUIDs(ids), backends, s.Trusts()).Query(func(rows pgx.Rows) error {
		var id saga.ID
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { dead[id] = true; return nil })
		return err
	})
	if err := q.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, fmt.Errorf("look for dead sessions: %w", err)
	}
	return dead, nil
}

// Trusts reports whether this process may treat others as dead by their locks. See doubtFor.
func (s *Session) Trusts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().After(s.doubt)
}

// UUIDs converts ids for connections that do not have our own array types.
func UUIDs(ids []saga.ID) [][16]byte {
	uuids := make([][16]byte, len(ids))
	for i, id := range ids {
		uuids[i] = id
	}
	return uuids
}

// Enter is called before a take, while no transaction is open. In a process in quarantine it waits until no worker
// has a suspect in hand, or, with alone, until no worker has any message in hand. The caller must call release when
// the batch is over.
func (s *Session) Enter(alone bool) (release func()) {
	switch {
	case s.quarantined.Load() == nil:
		return func() {}
	case alone:
		s.gate.Lock()
		return s.gate.Unlock
	}
	s.gate.RLock()
	return s.gate.RUnlock
}

// InQuarantine reports whether batches of the queue are to be entered into the in-flight journal.
func (s *Session) InQuarantine(queue int) bool {
	quarantined := s.quarantined.Load()
	if quarantined == nil {
		return false
	}
	_, is := (*quarantined)[queue]
	return is
}
