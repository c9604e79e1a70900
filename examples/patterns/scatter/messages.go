package scatter

// GetQuote starts a search for the best price, which ends with Quote.
type GetQuote struct {
	ID        string
	Article   string
	Suppliers []string
}

// AskSupplier goes to each supplier. The answer is Price.
type AskSupplier struct{ Supplier, Article string }

// Price answers AskSupplier.
type Price struct {
	Supplier string
	Cents    int
}

// Quote is the event at the end: the best price, or none if no supplier answered in time.
type Quote struct {
	ID   string
	Best *Price
}

// TimeIsUp is the timeout of the search.
type TimeIsUp struct{}

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

func (GetQuote) Kind() string    { return "quote.get" }
func (AskSupplier) Kind() string { return "supplier.ask" }
func (Price) Kind() string       { return "supplier.price" }
func (Quote) Kind() string       { return "quote.found" }
func (TimeIsUp) Kind() string    { return "quote.time-is-up" }
func (Gather) Kind() string      { return "scatter.gather" }
func (Collect) Kind() string     { return "scatter.collect" }
func (More) Kind() string        { return "scatter.more" }
func (Ask) Kind() string         { return "request.ask" }
func (Answer) Kind() string      { return "request.answer" }
func (Part) Kind() string        { return "scatter.part" }
func (Gathered) Kind() string    { return "scatter.gathered" }
func (CountItems) Kind() string  { return "scatter.count-items" }
func (AllThere) Kind() string    { return "scatter.all-there" }

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

// Want is what the replies to the requests 0 to requests-1 add up to.
func Want(requests int) (t Total) {
	for number := range requests {
		t.add(total(answerTo(number)))
	}
	return t
}

// answerTo is what the reply to a request says.
func answerTo(number int) int64 { return int64(number)*7919%10007 + 1 }

func total(value int64) Total { return Total{Count: 1, Sum: value, Squares: value * value} }
