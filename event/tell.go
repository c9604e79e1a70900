package event

import "slices"

// Tell combines several receivers into one, for Events of bus.Options: it calls them one after another, and leaves
// out nil ones. It returns nil if all are nil. If one panics, the others are called, and the panic continues.
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
