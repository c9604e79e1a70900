package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// session is this process as others see it: a row that says which queues it runs, renewed now and then, and ended when
// the last endpoint has. The connection that listens holds the row's advisory lock, so that others see at once when the
// process is gone without an end. With PollOnly there is no such connection, and they see it when the row expires.
//
// A death that somebody saw puts the queues of the dead process into quarantine for a while, in every process: see
// quarantine.go. Safe for concurrent use.
type session struct {
	bus  *Bus
	id   saga.ID
	host string

	quarantined atomic.Pointer[map[int]struct{}] // queues in quarantine; nil as long as there are none
	gate        sync.RWMutex                     // batches of a process in quarantine share it, a suspect has it alone
	peers       atomic.Bool                      // there are other sessions
	keeper      chan struct{}                    // held by the one endpoint of the bus that renews for all
	listening   chan struct{}                    // held by the one endpoint of the bus that listens for all
	news        run.Nudge                        // another process saw a death

	looking sync.Mutex // guards looked: one worker asks for all
	looked  time.Time

	// of capacity 1: whoever has put something in writes the row, so that an end and a beginning do not cross
	writing chan struct{}

	mu      sync.Mutex    // guards all below
	running map[int]int   // endpoints that run, by queue
	holds   bool          // the lock
	ready   chan struct{} // closed while the lock is held and known
	doubt   time.Time     // until then what looks like deaths may be our own lost connection
	over    []saga.ID     // batches that are over, and still in the journal
}

const (
	sessionFor    = lease.Default // a session that was not renewed for so long is dead
	renewEvery    = 5 * time.Second
	renewTimeout  = 3 * time.Second
	quarantineFor = 10 * time.Minute // after the last death
	deathsEvery   = 100 * time.Millisecond
	deathsTimeout = 50 * time.Millisecond
	lockWait      = time.Second
	sessionKept   = time.Hour // after its end
	diedPayload   = "died"    // of a notification
	watched       = 20        // sessions whose locks each renewal tries
)

func newSession(b *Bus) *session {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // it is for people who read the log
	}
	return &session{
		bus: b, id: newID(), host: host, keeper: make(chan struct{}, 1), news: run.NewNudge(),
		writing: make(chan struct{}, 1), listening: make(chan struct{}, 1),
		running: map[int]int{}, ready: make(chan struct{}),
	}
}

// join is called before an endpoint takes its first message, and leave after its last. When join returns, deaths that
// could be seen are known.
func (s *session) join(ctx context.Context, queue int) (leave func(), err error) {
	s.mu.Lock()
	s.running[queue]++
	s.mu.Unlock()
	leave = func() { s.leave(context.WithoutCancel(ctx), queue) }
	if err := s.renew(ctx, renewal{within: renewTimeout, tryAll: true}); err != nil {
		leave()
		return nil, fmt.Errorf("begin a session: %w", pg.Explain(err))
	}
	return leave, nil
}

func (s *session) leave(ctx context.Context, queue int) {
	s.writing <- struct{}{} // whoever has it has a deadline
	defer func() { <-s.writing }()
	s.mu.Lock()
	if s.running[queue]--; s.running[queue] == 0 {
		delete(s.running, queue)
	}
	last := len(s.running) == 0
	s.mu.Unlock()
	if !last {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	pipeline := &pgx.Batch{}
	s.queueOver(pipeline)
	pipeline.Queue(s.bus.sql.Get("end_session"), s.id)
	if err := s.bus.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		s.bus.log.Warn("edda: the session was not ended, which will look like a death", "session", s.id.String(),
			"error", err)
	}
}

// keep renews the session until ctx ends, and at once when another process saw a death. One endpoint of the bus does it
// for all.
func (s *session) keep(ctx context.Context) error {
	select {
	case s.keeper <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-s.keeper }()
	for {
		if run.Wait(ctx, run.Jitter(renewEvery), s.news) == run.Ended {
			return nil
		}
		if err := s.renew(ctx, renewal{within: renewTimeout}); err != nil && ctx.Err() == nil {
			s.doubtFor(sessionFor)
			s.bus.calm.Warn("edda: the session was not renewed", "session", s.id.String(), "error", err)
		}
	}
}

// renewal is how the session is renewed.
type renewal struct {
	within time.Duration
	tryAll bool // the locks of all sessions, and not only of those behind ours
}

// renew says that this process lives, marks those that do not, and learns which queues are in quarantine.
func (s *session) renew(ctx context.Context, r renewal) error {
	ctx, cancel := context.WithTimeout(ctx, r.within)
	defer cancel()
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return fmt.Errorf("wait for another renewal: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	queues, holds, trust := slices.Sorted(maps.Keys(s.running)), s.holds, time.Now().After(s.doubt)
	s.mu.Unlock()
	if len(queues) == 0 {
		return nil // it has ended, and must not begin again
	}
	sql, found := s.bus.sql, sighting{quarantined: map[int]time.Duration{}}
	pipeline := &pgx.Batch{}
	pipeline.Queue(queue.Open())
	pipeline.Queue(sql.Get("lazily"))
	pipeline.Queue(sql.Get("renew_session"), s.id, s.host, os.Getpid(), queues, holds, sessionFor.Microseconds())
	over := s.queueOver(pipeline)
	if trust {
		pipeline.Queue(sql.Get("bury_sessions"), s.id, r.tryAll, watched).Query(found.readDead)
	}
	pipeline.Queue(sql.Get("peers"), s.id).QueryRow(func(row pgx.Row) error { return row.Scan(&found.peers) })
	pipeline.Queue(sql.Get("quarantined_queues"), queues, quarantineFor.Microseconds()).Query(found.readQuarantine)
	if err := s.bus.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return err
	}
	s.bus.outage.Over()
	s.mu.Lock()
	s.over = s.over[over:]
	s.mu.Unlock()
	s.learn(ctx, found)
	return nil
}

// leaveLater has the next renewal, which is soon, take a batch that is over out of the journal.
func (s *session) leaveLater(entered saga.ID) {
	s.mu.Lock()
	s.over = append(s.over, entered)
	s.mu.Unlock()
	s.news.Send()
}

func (s *session) queueOver(pipeline *pgx.Batch) (over int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.over) > 0 {
		pipeline.Queue(s.bus.sql.Get("leave_batches"), uuidsOf(s.over))
	}
	return len(s.over)
}

// sighting is what one renewal saw.
type sighting struct {
	peers       bool
	dead        []deadSession
	quarantined map[int]time.Duration // queue to how long that lasts
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

// learn makes what was seen the state of this process, and tells the others and the log.
func (s *session) learn(ctx context.Context, found sighting) {
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
	log := s.bus.log
	for _, d := range found.dead {
		log.Warn("edda: a process died", "session", d.id.String(), "host", d.host, "pid", d.pid, "endpoints",
			s.names(d.queues))
	}
	for queue, remaining := range found.quarantined {
		if _, was := old[queue]; !was {
			log.Warn("edda: quarantine", "endpoint", s.names([]int{queue})[0], "until",
				time.Now().Add(remaining).UTC())
		}
	}
	for queue := range old {
		if _, is := now[queue]; !is {
			log.Info("edda: quarantine ended", "endpoint", s.names([]int{queue})[0])
		}
	}
	if len(found.dead) > 0 && s.bus.wakeup == Notify {
		s.bus.notifier.Send(ctx, diedPayload)
	}
}

func (s *session) names(queues []int) []string {
	known := s.bus.routes.Current()
	names := make([]string, len(queues))
	for i, id := range queues {
		names[i] = fmt.Sprintf("queue %d", id)
		if known != nil && known.ByID[id] != nil {
			names[i] = known.ByID[id].Endpoint
		}
	}
	return names
}

// doubtFor keeps this process from believing in deaths for a while: after a restart of Postgres nobody holds a lock.
func (s *session) doubtFor(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt = time.Now().Add(d)
}

// lock takes the session's lock on conn, which tells nobody anything yet.
func (s *session) lock(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, s.bus.sql.Get("lock_session"), s.id)
	if err == nil && tag.RowsAffected() == 0 {
		err = errors.New("its row is not there")
	}
	if err != nil {
		return fmt.Errorf("lock the session: %w", err)
	}
	return nil
}

// locked says in the row that the lock is held: from now on others see at once when this process dies.
func (s *session) locked(ctx context.Context) error {
	s.mu.Lock()
	s.holds = true
	s.mu.Unlock()
	if err := s.renew(ctx, renewal{within: renewTimeout}); err != nil {
		return fmt.Errorf("say that the session is locked: %w", err)
	}
	s.mu.Lock()
	close(s.ready)
	s.mu.Unlock()
	return nil
}

// unlock says that the lock tells nothing any more, before its connection is closed; when ctx has not ended, that
// was lost.
func (s *session) unlock(ctx context.Context) {
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
		s.bus.log.Debug("edda: unlock the session", "error", err) // a false alarm for the others
	}
}

// awaitLock waits until others would see at once if this process died, or for a second.
func (s *session) awaitLock(ctx context.Context) {
	if s.bus.wakeup == PollOnly {
		return
	}
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	run.Wait(ctx, lockWait, ready)
}

// lookAround asks who has died, on behalf of all workers and not too often. It is for a batch with messages that
// somebody had in hand before: that may have been a process which is gone since a millisecond.
//
// The batch keeps its transaction meanwhile, so with PollOnly nobody asks: behind a pooler that would wait for a
// session while it has one, and a death is not seen before the time of its session is over, which the renewals find
// out.
func (s *session) lookAround(ctx context.Context) {
	if !s.peers.Load() || s.bus.wakeup == PollOnly {
		return
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	if time.Since(s.looked) < deathsEvery {
		return
	}
	s.looked = time.Now()
	if err := s.renew(ctx, renewal{within: deathsTimeout, tryAll: true}); err != nil {
		s.bus.log.Debug("edda: look for dead processes", "error", err) // the next renewal finds them
	}
}

// owner is a session, and the server process that ran a batch of it; 0 when nobody noted that.
type owner struct {
	session saga.ID
	backend int
}

// dead tells which of the sessions belong to processes that died: their rows say so, or their lock is free, or their
// time is over. One that holds no lock, as with PollOnly, is taken for dead before its time is over when the server
// process is gone that ran its batch. Our own session never is dead. While this process doubts its own connection it
// believes only what others saw.
func (s *session) dead(ctx context.Context, q queue.Pipeliner, owners []owner) (map[saga.ID]bool, error) {
	var ids []saga.ID
	var backends []int
	for _, o := range owners {
		if o.session != s.id {
			ids, backends = append(ids, o.session), append(backends, o.backend)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	dead := map[saga.ID]bool{}
	pipeline := &pgx.Batch{}
	pipeline.Queue(s.bus.sql.Get("look_anew"))
	pipeline.Queue(s.bus.sql.Get("dead_sessions"), uuidsOf(ids), backends, s.trusts()).Query(func(rows pgx.Rows) error {
		var id saga.ID
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { dead[id] = true; return nil })
		return err
	})
	if err := q.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, fmt.Errorf("ask which sessions are dead: %w", err)
	}
	return dead, nil
}

// trusts reports whether this process may believe what it sees of others. See doubtFor.
func (s *session) trusts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().After(s.doubt)
}

// uuidsOf is for connections that do not know our own arrays.
func uuidsOf(ids []saga.ID) [][16]byte {
	uuids := make([][16]byte, len(ids))
	for i, id := range ids {
		uuids[i] = id
	}
	return uuids
}
