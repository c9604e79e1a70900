package gather

// Gather asks for the replies to the requests First to Last-1. From outside it starts the whole; a saga sends it to the
// sagas that it divides its requests among.
type Gather struct {
	Run         string
	Design      string
	First, Last int
	Depth       int
	Bytes       int // of the text in each reply, which the saga keeps
}

// Collect asks for the replies to so many requests, in the append design.
type Collect struct {
	Run      string
	Requests int
	Bytes    int // of the text in each reply, which is kept in the row
}

// More is a timeout of a saga that has more requests than one step should send.
type More struct{}

// Ask is one request. The answer is Answer, to the saga that asked, or to another endpoint when one is named.
type Ask struct {
	Run    string
	Number int
	To     string
	Bytes  int
}

// Answer answers Ask.
type Answer struct {
	Run    string
	Number int
	Value  int64
	Text   string `json:",omitempty"`
}

// Part is the answer of a saga that was given a part of the requests.
type Part struct{ Total Total }

// Gathered is the end of a run.
type Gathered struct {
	Run   string
	Total Total
}

// CountItems asks, in the append design, whether all replies are there. When they are, AllThere is sent to the saga.
type CountItems struct {
	Key, Run string
	Want     int
}

// AllThere says so.
type AllThere struct {
	Key   string
	Total Total
}

// Kind names the message.
func (Gather) Kind() string { return "scatter.gather" }

// Kind names the message.
func (Collect) Kind() string { return "scatter.collect" }

// Kind names the message.
func (More) Kind() string { return "scatter.more" }

// Kind names the message.
func (Ask) Kind() string { return "request.ask" }

// Kind names the message.
func (Answer) Kind() string { return "request.answer" }

// Kind names the message.
func (Part) Kind() string { return "scatter.part" }

// Kind names the message.
func (Gathered) Kind() string { return "scatter.gathered" }

// Kind names the message.
func (CountItems) Kind() string { return "scatter.count-items" }

// Kind names the message.
func (AllThere) Kind() string { return "scatter.all-there" }

// Total is what replies add up to. The squares tell one reply that was counted twice, and another never, from both of
// them counted once.
type Total struct {
	Count        int
	Sum, Squares int64
}

func (t *Total) add(other Total) {
	t.Count += other.Count
	t.Sum += other.Sum
	t.Squares += other.Squares
}

// answerTo is what the reply to a request says. check.sql has it too.
func answerTo(number int) int64 { return int64(number)*7919%10007 + 1 }

func total(value int64) Total { return Total{Count: 1, Sum: value, Squares: value * value} }
