package bus

// cancelledError is ErrCancelled with the reason.
type cancelledError string

func (e cancelledError) Error() string        { return string(e) }
func (e cancelledError) Is(target error) bool { return target == ErrCancelled }
