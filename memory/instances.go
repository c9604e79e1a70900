package memory

import (
	"bytes"
	"slices"

	"github.com/edda-go/edda/saga"
)

// instances are the saga instances. The mutex of the world guards them.
type instances struct {
	keys map[string]map[string]saga.ID // by saga and key
	all  map[saga.ID]saga.Instance
}

func (s *instances) begin() {
	s.keys, s.all = map[string]map[string]saga.ID{}, map[saga.ID]saga.Instance{}
}

// byKey returns a copy of an instance.
func (s *instances) byKey(name, key string) (saga.Instance, bool) {
	id, ok := s.keys[name][key]
	if !ok {
		return saga.Instance{}, false
	}
	return s.byID(id)
}

func (s *instances) byID(id saga.ID) (saga.Instance, bool) {
	i, ok := s.all[id]
	i.State, i.Pending = bytes.Clone(i.State), slices.Clone(i.Pending)
	return i, ok
}

// save stores an instance with its version increased by one.
func (s *instances) save(i saga.Instance) {
	i.New = false
	i.Version++
	i.State, i.Pending = bytes.Clone(i.State), slices.Clone(i.Pending)
	if s.keys[i.Saga] == nil {
		s.keys[i.Saga] = map[string]saga.ID{}
	}
	s.keys[i.Saga][i.Key], s.all[i.ID] = i.ID, i
}

func (s *instances) remove(i saga.Instance) {
	delete(s.all, i.ID)
	if s.keys[i.Saga][i.Key] == i.ID {
		delete(s.keys[i.Saga], i.Key)
	}
}
