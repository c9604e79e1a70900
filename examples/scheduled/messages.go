package main

import "time"

// Settle begins the settlement of a currency for the night in which it fires.
type Settle struct {
	Currency string `json:"currency"`
}

// AskBank requests the turnover of a currency. The bank takes its time; the answer is Balance.
type AskBank struct {
	Currency string `json:"currency"`
}

// Balance answers AskBank.
type Balance struct {
	Cents int64 `json:"cents"`
}

// Enter writes a settlement into the books. The answer is Entered.
type Enter struct {
	Manifest string    `json:"manifest"`
	Due      time.Time `json:"due"`
	Cents    int64     `json:"cents"`
}

// Entered answers Enter.
type Entered struct{}

// Report reports the settlements that are not reported yet.
type Report struct {
	Currency string `json:"currency"`
}

// Poll looks whether anything is new.
type Poll struct{}

// ReadRates reads a file in an unknown format.
type ReadRates struct{}

// Kind names the message.
func (Settle) Kind() string { return "settlement.start" }

// Kind names the message.
func (AskBank) Kind() string { return "bank.ask" }

// Kind names the message.
func (Balance) Kind() string { return "bank.balance" }

// Kind names the message.
func (Enter) Kind() string { return "books.enter" }

// Kind names the message.
func (Entered) Kind() string { return "books.entered" }

// Kind names the message.
func (Report) Kind() string { return "books.report" }

// Kind names the message.
func (Poll) Kind() string { return "poll" }

// Kind names the message.
func (ReadRates) Kind() string { return "rates.read" }
