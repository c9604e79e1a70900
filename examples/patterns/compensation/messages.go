package compensation

// BookTrip starts a trip.
type BookTrip struct {
	Trip string `json:"trip"`
}

// Book books a part of a trip. The answer is Booked or Refused.
type Book struct {
	Trip string `json:"trip"`
	Part string `json:"part"`
}
type Booked struct {
	Part string `json:"part"`
}
type Refused struct {
	Part string `json:"part"`
}

// Undo cancels a part, if it was booked at all. The answer is Undone.
type Undo struct {
	Trip string `json:"trip"`
	Part string `json:"part"`
}
type Undone struct {
	Part string `json:"part"`
}

// TripBooked and TripFailed are the two ends.
type TripBooked struct {
	Trip string `json:"trip"`
}
type TripFailed struct {
	Trip string `json:"trip"`
}

// NoAnswer is the timeout of a part.
type NoAnswer struct{}

func (BookTrip) Kind() string   { return "trip.book" }
func (Book) Kind() string       { return "part.book" }
func (Booked) Kind() string     { return "part.booked" }
func (Refused) Kind() string    { return "part.refused" }
func (Undo) Kind() string       { return "part.undo" }
func (Undone) Kind() string     { return "part.undone" }
func (TripBooked) Kind() string { return "trip.booked" }
func (TripFailed) Kind() string { return "trip.failed" }
func (NoAnswer) Kind() string   { return "trip.no-answer" }
