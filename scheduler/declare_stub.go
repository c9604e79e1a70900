package scheduler

func (s *Scheduler) declare(m []Manifest) error { return nil }
