package browser

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the pictures anew")

//go:embed testdata/freeze.js
var freeze string

// Pictures are equal if few pixels differ, in the whole and in each part of them. A different version of the browser
// only draws the edges of letters differently.
const (
	far      = 64    // of a channel, in one pixel
	mostOf   = 0.002 // of the pixels of a picture
	side     = 64    // of a part, in pixels
	mostPart = 0.02  // of the pixels of a part
)

// picture compares the open page with the picture of that name, after its variable texts were replaced.
func (v *visitor) picture(page, look string) {
	v.t.Helper()
	got := v.frozen(page)
	file := filepath.Join("testdata", "pictures", page+"-"+look+".png")
	if *update {
		save(v.t, file, got)
		if page == "instance" && look == desk.name {
			save(v.t, filepath.Join("..", "..", "docs", "images", "saga.png"), top(got, 820))
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		v.t.Fatalf("%v; go test . -update writes it", err)
	}
	want, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		v.t.Fatal(err)
	}
	if fault := differ(want, got); fault != "" {
		kept := filepath.Join(os.TempDir(), "edda-"+page+"-"+look+".png")
		save(v.t, kept, got)
		v.t.Errorf("%s looks different: %s. %s is how it looks; go test . -update writes it anew", file, fault, kept)
	}
}

// frozen returns a picture of the open page.
func (v *visitor) frozen(page string) image.Image {
	v.t.Helper()
	fonts := [][3]string{}
	for _, f := range [][3]string{
		{"picture text", "400", "text"}, {"picture text", "600", "bold"}, {"picture mono", "400", "mono"},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "fonts", f[2]+".woff2"))
		if err != nil {
			v.t.Fatal(err)
		}
		fonts = append(fonts, [3]string{f[0], f[1], base64.StdEncoding.EncodeToString(text)})
	}
	host, err := os.Hostname()
	if err != nil {
		v.t.Fatal(err)
	}
	arguments, err := json.Marshal([]any{fonts, page, host})
	if err != nil {
		v.t.Fatal(err)
	}
	v.until("the stream is open", `!document.body.dataset.stream || document.getElementById("link").textContent`)
	v.script(`document.body.dataset.stream && document.getElementById("hold").click()`) // nothing changes from now on
	var done string
	var shot []byte
	v.do("freeze and take a picture", chromedp.Evaluate(freeze+"(..."+string(arguments)+")", &done,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
		chromedp.FullScreenshot(&shot, 100))
	got, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		v.t.Fatal(err)
	}
	return got
}

// differ describes the difference, or returns "" if it does not matter.
func differ(want, got image.Image) string {
	if want.Bounds() != got.Bounds() {
		return fmt.Sprintf("its size is %v, want %v", got.Bounds().Size(), want.Bounds().Size())
	}
	a, b := plain(want), plain(got)
	all, parts := 0, map[image.Point]int{}
	for y := range a.Rect.Dy() {
		for x := range a.Rect.Dx() {
			if p, q := a.RGBAAt(x, y), b.RGBAAt(x, y); max(apart(p.R, q.R), apart(p.G, q.G), apart(p.B, q.B)) > far {
				all++
				parts[image.Pt(x/side, y/side)]++
			}
		}
	}
	if most := float64(a.Rect.Dx()*a.Rect.Dy()) * mostOf; float64(all) > most {
		return fmt.Sprintf("%d pixels differ, want %.0f at most", all, most)
	}
	for at, n := range parts {
		if float64(n) > side*side*mostPart {
			return fmt.Sprintf("%d pixels differ in the square of %d at %v", n, side, at.Mul(side))
		}
	}
	return ""
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

func plain(from image.Image) *image.RGBA {
	to := image.NewRGBA(image.Rectangle{Max: from.Bounds().Size()})
	draw.Draw(to, to.Rect, from, from.Bounds().Min, draw.Src)
	return to
}

// top returns the upper part of a picture.
func top(of image.Image, height int) image.Image {
	to := image.NewRGBA(image.Rect(0, 0, of.Bounds().Dx(), min(height, of.Bounds().Dy())))
	draw.Draw(to, to.Rect, of, of.Bounds().Min, draw.Src)
	return to
}

// shades is how many colours a file has, and near is the smallest distance between two of them.
const (
	shades = 64
	near   = 20
)

// palette returns the most frequent colours of a picture, at some distance from each other, so that a small mark
// keeps its colour.
func palette(of *image.RGBA) (chosen color.Palette) {
	counts := map[color.RGBA]int{}
	for n := 0; n < len(of.Pix); n += 4 {
		counts[color.RGBA{of.Pix[n], of.Pix[n+1], of.Pix[n+2], 255}]++
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], slices.Compare([]uint8{a.R, a.G, a.B}, []uint8{b.R, b.G, b.B}))
	})
	for n, c := range all {
		close := func(o color.Color) bool {
			d := o.(color.RGBA)
			return max(apart(c.R, d.R), apart(c.G, d.G), apart(c.B, d.B)) < near
		}
		if len(chosen) < shades && (n < shades/8 || !slices.ContainsFunc(chosen, close)) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// save writes a picture with few colours.
func save(t *testing.T, file string, picture image.Image) {
	t.Helper()
	from := plain(picture)
	to := image.NewPaletted(from.Rect, palette(from))
	draw.Draw(to, to.Rect, from, image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, to); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
