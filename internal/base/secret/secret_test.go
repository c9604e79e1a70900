package secret

import (
	"encoding/json"
	"reflect"
	"testing"
)

type card struct {
	Number string `edda:"secret"`
	Owner  string `json:"owner"`
}

type embedded struct {
	Token []byte `json:"token" edda:"secret"`
}

type tree struct {
	Name     string
	PIN      int `edda:"secret"`
	Children []*tree
}

type own struct {
	Pass string `edda:"secret"`
}

func (own) MarshalJSON() ([]byte, error) { return []byte(`"whatever"`), nil }

type hidden struct {
	card  `edda:"secret"`
	Order string
}

type ownList []card

func (ownList) MarshalJSON() ([]byte, error) { return []byte(`{"items":[]}`), nil }

type paging struct{ Token string }

type hiding struct {
	Token string `edda:"secret"`
	paging
}

type cases struct {
	Password string `json:"password" edda:"secret"`
	Other    string `json:"PassWord"`
	Card     card
	Plain    struct{ Owner struct{ A int } } `json:"card"`
}

type itself struct {
	*itself     //nolint:unused // json reads it
	PIN     int `edda:"secret"`
}

type state struct {
	embedded
	Cards  []card
	ByName map[string]card
	Whole  card `json:"whole" edda:"secret"`
	Own    own
	Tree   *tree
	Amount json.Number
	Plain  string
	Hidden string `json:"-" edda:"secret"`
}

func TestSecretsAreMasked(t *testing.T) {
	for name, c := range map[string]struct {
		of         any
		text, want string
	}{
		"a field":                 {card{}, `{"Number":"4711","owner":"ann"}`, `{"Number":"[secret]","owner":"ann"}`},
		"a name in other letters": {card{}, `{"NUMBER":"4711"}`, `{"NUMBER":"[secret]"}`},
		"an embedded struct":      {state{}, `{"token":"YWJj"}`, `{"token":"[secret]"}`},
		"a list": {state{}, `{"Cards":[{"Number":"1"},{"Number":"2"}]}`,
			`{"Cards":[{"Number":"[secret]"},{"Number":"[secret]"}]}`},
		"a map": {state{}, `{"ByName":{"Number":{"Number":"1"}}}`,
			`{"ByName":{"Number":{"Number":"[secret]"}}}`},
		"a whole struct":             {state{}, `{"whole":{"owner":"ann"}}`, `{"whole":"[secret]"}`},
		"null":                       {state{}, `{"whole":null}`, `{"whole":null}`},
		"a type that encodes itself": {state{}, `{"Own":"whatever"}`, `{"Own":"[secret]"}`},
		"a type within itself": {state{}, `{"Tree":{"Name":"a","PIN":1,"Children":[{"PIN":2}]}}`,
			`{"Tree":{"Children":[{"PIN":"[secret]"}],"Name":"a","PIN":"[secret]"}}`},
		"a large number": {state{}, `{"Amount":12345678901234567890.10,"token":""}`,
			`{"Amount":12345678901234567890.10,"token":"[secret]"}`},
		"a pointer":            {&card{}, `{"Number":"4711"}`, `{"Number":"[secret]"}`},
		"another shape":        {card{}, `["Number"]`, `"[secret]"`},
		"another shape within": {state{}, `{"Cards":"4711","Plain":{"a":1}}`, `{"Cards":"[secret]","Plain":{"a":1}}`},
		"a secret that is embedded": {hidden{}, `{"Number":"4711","owner":"ann","Order":"o"}`,
			`{"Number":"[secret]","Order":"o","owner":"[secret]"}`},
		"a list that encodes itself":   {struct{ L ownList }{}, `{"L":{"items":["4711"]}}`, `{"L":"[secret]"}`},
		"a field over an embedded one": {hiding{}, `{"Token":"x"}`, `{"Token":"[secret]"}`},
		"names in other letters": {cases{}, `{"PASSWORD":"x","PassWord":"x","pa\u017f\u017fword":"x","paſſword":"x"}`,
			`{"PASSWORD":"[secret]","PassWord":"[secret]","paſſword":"[secret]"}`},
		"two structs of one name": {cases{}, `{"card":{"NUMBER":"x","owner":{"A":1}}}`,
			`{"card":{"NUMBER":"[secret]","owner":{"A":1}}}`},
		"a struct within itself": {itself{}, `{"PIN":7}`, `{"PIN":"[secret]"}`},
	} {
		m, err := Of(reflect.TypeOf(c.of))
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Apply([]byte(c.text))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestTypesWithoutSecretsHaveNoMask(t *testing.T) {
	type plain struct {
		A int
		B []string
		C map[string]*plain
	}
	for _, v := range []any{plain{}, &plain{}, 1, "", []int{}, struct{}{}} {
		if m, err := Of(reflect.TypeOf(v)); m != nil || err != nil {
			t.Errorf("%T: %v, %v", v, m, err)
		}
	}
	if m, err := Of(nil); m != nil || err != nil {
		t.Errorf("no type: %v, %v", m, err)
	}
	text := []byte(`{"a": 1}`)
	if got, err := (*Mask)(nil).Apply(text); err != nil || &got[0] != &text[0] {
		t.Errorf("without a mask it is %s, %v", got, err)
	}
}

func TestWrongTagIsAnError(t *testing.T) {
	type wrong struct {
		A string `edda:"secrte"`
	}
	for range 2 { // the second result comes from the cache
		_, err := Of(reflect.TypeFor[wrong]())
		if want := `field A of secret.wrong has the tag edda:"secrte", want edda:"secret"`; err == nil ||
			err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestWhatIsNoJSONIsAnError(t *testing.T) {
	m, err := Of(reflect.TypeFor[card]())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Apply([]byte("\x00")); err == nil {
		t.Errorf("it became %q", got)
	}
}

// A masked text shows where the secrets of its type are.
func TestMaskLikeAText(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{`{"a":"[secret]","b":1}`, `{"a":"x","b":2}`, `{"a":"[secret]","b":2}`},
		{`{"l":[{"a":1},{"a":"[secret]","d":1},{"b":"[secret]","d":1}]}`, `{"l":[{"a":7,"b":8,"c":9}]}`,
			`{"l":[{"a":"[secret]","b":"[secret]","c":9}]}`},
		{`{"m":{"x":"[secret]"}}`, `{"m":{"y":"k","z":1}}`, `{"m":{"y":"[secret]","z":"[secret]"}}`},
		{`"[secret]"`, `{"y":"k"}`, `"[secret]"`},
		{`{"a":1}`, `{"a":"x"}`, `{"a":"x"}`},
		{`[secret]`, `{"a":"x"}`, `{"a":"x"}`},
		{`[["[secret]"],[1]]`, `[[2],[3]]`, `[["[secret]"],["[secret]"]]`},
	} {
		got, err := Like([]byte(c[0])).Apply([]byte(c[1]))
		if err != nil || string(got) != c[2] {
			t.Errorf("like %s: %s, %v, want %s", c[0], got, err, c[2])
		}
	}
}
