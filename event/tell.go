package event

import "slices"

// Tell returns one receiver for several, for Events of bus.Options: it calls them one after another, and leaves out
// those that are nil. It returns nil if none is left. If one of them panics the others are called all the same.
func Tell(receivers ...func(Event)) func(Event) {
	all := slices.DeleteFunc(slices.Clone(receivers), func(f func(Event)) bool { return f == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(e Event) { tell(all, e) }
}

func tell(all []func(Event), e Event) {
	if len(all) > 1 {
		defer tell(all[1:], e)
	}
	all[0](e)
}
