package bus_test

import "testing"

// A handler with an effect outside of the transaction runs again when its process dies after the effect. If the
// transaction of the effect records the message's id, the effect happens only once, and the messages of such a handler
// are sent once, with the end of its message.
func TestEffectOutsideIsOnceUnderTheMessagesID(t *testing.T) {
	w := poisoned(t)
	w.exec(`CREATE TABLE edda.charged (message uuid PRIMARY KEY); GRANT ALL ON edda.charged TO PUBLIC`)
	w.exec(`CREATE TABLE edda.account (balance int NOT NULL); GRANT ALL ON edda.account TO PUBLIC`)
	w.exec(`INSERT INTO edda.account VALUES (100)`)
	if w.role != "" {
		w.exec(`GRANT INSERT, SELECT ON edda.charged TO "` + w.role + `"`)
		w.exec(`GRANT UPDATE, SELECT ON edda.account TO "` + w.role + `"`)
	}
	w.preload(1)
	w.exec(`UPDATE `+w.queue("poisoned")+` SET kind = $1`, charge{}.Kind())

	s := w.supervise(1, workerSpec{Leased: true, Concurrency: 2})
	w.drained("the charge and what it sent are handled")
	s.stop()
	if n := s.died(); n != 1 {
		t.Errorf("%d processes died, want 1: the handler is to run twice", n)
	}
	w.want(1, `SELECT count(*) FROM edda.charged`)
	w.want(99, `SELECT balance FROM edda.account`)
	w.want(1, `SELECT count(*) FROM edda.effect`) // of the command that both runs sent
	w.want(0, `SELECT (SELECT count(*) FROM edda.dead_letter) + (SELECT count(*) FROM edda.discarded)`)
}
