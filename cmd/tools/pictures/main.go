// Command pictures makes the pictures of README.md: it starts the demo of a program and takes screenshots
// of its pages in a real browser.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"palimpsest/api/apiclient"
	"palimpsest/api/programtest"
	"palimpsest/cmd/palimpsest/demo"
)

const (
	width    = 1440 // of the screen, in px
	usual    = 1000
	tall     = 1380 // includes the part below the fold
	patience = time.Minute
)

// picture is a screenshot of a page.
type picture struct {
	name, path, theme string
	ready             string // condition that is true after the page has drawn itself
	height            int64  // of the screen, in px
}

func main() {
	binary := flag.String("binary", "bin/palimpsest", "the program")
	folder := flag.String("write", "docs/pictures", "where the pictures go")
	data := flag.String("data", "bin/pictures", "where the demo lies; what is there is used again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *binary, *folder, *data)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, folder, data string) (err error) {
	program, err := programtest.Start(ctx, binary, []string{"demo"}, programtest.Environment(data))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Stop()) }()
	client, err := logIn(ctx, program.URL, filepath.Join(data, "demo", "demo.json"))
	if err != nil {
		return err
	}
	session, err := session(ctx, client)
	if err != nil {
		return err
	}
	const charted = `document.querySelectorAll('[data-chart] canvas').length === document.querySelectorAll('[data-chart]').length`
	const always = `true`
	for _, wanted := range []picture{
		{"overview-light-1440", "/overview?range=30d", "light", charted, usual},
		{"overview-dark-1440", "/overview?range=90d", "dark", charted, usual},
		{"session-light-1440", session, "light", always, tall}, // its chart is folded
		{"sessions-light-1440", "/sessions?range=30d", "light", always, usual},
		{"pipeline-light-1440", "/pipeline", "light", `document.querySelector('[data-testid="replayed"]') && !document.querySelector('[aria-busy="true"], .htmx-request')`, usual},
		{"requests-light-1440", "/requests?error_from=provider", "light", always, usual},
	} {
		if err := take(ctx, client, program.URL, wanted, folder); err != nil {
			return fmt.Errorf("%s: %w", wanted.name, err)
		}
	}
	return nil
}

// logIn logs in to the demo as the owner named in its file.
func logIn(ctx context.Context, address, file string) (*apiclient.Client, error) {
	var state struct {
		Made struct {
			Email string `json:"email"`
		} `json:"made"`
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return nil, fmt.Errorf("read what the demo is: %w", err)
	}
	client, err := apiclient.New(address, "")
	if err != nil {
		return nil, err
	}
	return client, client.Call(ctx, http.MethodPost, "/login", map[string]string{"email": state.Made.Email, "password": demo.Password}, nil)
}

// session returns the page of the longest session, at a shortened message.
func session(ctx context.Context, client *apiclient.Client) (path string, err error) {
	var all struct {
		Data []struct {
			ID       string `json:"id"`
			Client   string `json:"client"`
			Requests int    `json:"requests"`
			Epochs   int    `json:"epochs"`
		} `json:"data"`
	}
	if err := client.Call(ctx, http.MethodGet, "/sessions?limit=200", nil, &all); err != nil {
		return "", err
	}
	best := -1
	for i, session := range all.Data {
		if session.Epochs >= 2 && session.Requests <= 100 && (best < 0 || session.Requests > all.Data[best].Requests) {
			best = i
		}
	}
	if best < 0 {
		return "", errors.New("no session of the demo has two epochs")
	}
	id := all.Data[best].ID
	var turns struct {
		Data []struct {
			To    int `json:"to"` // index after its last message
			Level int `json:"level"`
		} `json:"data"`
	}
	if err := client.Call(ctx, http.MethodGet, "/sessions/"+url.PathEscape(id)+"/turns?limit=200", nil, &turns); err != nil {
		return "", err
	}
	for i, turn := range turns.Data {
		if turn.Level == 1 && i > len(turns.Data)/4 {
			return fmt.Sprintf("/sessions/%s?m=%d", id, turn.To-1), nil // the results of its calls
		}
	}
	return "/sessions/" + id, nil
}

// take takes one picture of a page of the demo, as the logged-in user of the client.
func take(ctx context.Context, client *apiclient.Client, demo string, wanted picture, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	browser, end := chromedp.NewContext(ctx, chromedp.WithAllocatorOptions(
		chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("force-prefers-reduced-motion", true), chromedp.Flag("hide-scrollbars", true),
	))
	defer end()
	if err := chromedp.Do(browser, chromedp.Navigate("about:blank")); err != nil {
		return fmt.Errorf("start chromium (install the package chromium): %w", err)
	}
	metrics := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: wanted.height, DeviceScaleFactor: 1}
	if _, err := chromedp.Call(browser, emulation.SetDeviceMetricsOverride, metrics); err != nil {
		return err
	}
	address, err := url.Parse(demo)
	if err != nil {
		return err
	}
	for _, cookie := range append([]*http.Cookie{{Name: "theme", Value: wanted.theme}}, client.HTTP.Jar.Cookies(address)...) { //nolint:gosec // the browser gets name and value of it
		kept := network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, Domain: address.Hostname(), Path: "/"}
		if _, err := chromedp.Call(browser, network.SetCookie, kept); err != nil {
			return err
		}
	}
	if err := chromedp.Do(browser, chromedp.Navigate(demo+wanted.path)); err != nil {
		return err
	}
	settled := `document.fonts.status === 'loaded' && document.readyState === 'complete' && ` + wanted.ready
	if _, err := chromedp.Run(browser, chromedp.Poll[bool](settled)); err != nil {
		return fmt.Errorf("wait for %s: %w", wanted.path, err)
	}
	shot, err := chromedp.Run(browser, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return write(filepath.Join(folder, wanted.name+".png"), shot)
}

// write writes a PNG with the best lossless compression.
func write(file string, shot []byte) error {
	decoded, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return fmt.Errorf("read the picture: %w", err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, decoded); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	if len(shot) < small.Len() {
		small = *bytes.NewBuffer(shot)
	}
	return os.WriteFile(file, small.Bytes(), 0o644) //nolint:gosec // it is for everybody to see
}
