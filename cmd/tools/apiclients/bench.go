package apiclients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"palimpsest/api/programtest"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/tokens"
)

// Bench runs clients: a running program and the installed packages.
type Bench struct {
	Program string // address of the program
	Binary  string // the program itself
	Install string // folder of the npm packages
	Guide   Guide  // setup instructions for clients

	count   func(string) int
	serial  int
	folders string
	account *programtest.Account // owns the workspace of each trial; nil before the first
}

// NewBench returns a bench that creates the folders of its trials below a directory.
func NewBench(program, binary, install, folders string, guide Guide) (*Bench, error) {
	counter, err := tokens.NewCounter()
	if err != nil {
		return nil, fmt.Errorf("count tokens: %w", err)
	}

	return &Bench{Program: program, Binary: binary, Install: install, Guide: guide, count: counter.Count, folders: folders}, nil
}

// Try tries one client in one case. The trial's Err reports a fault of the client, the proxy or both; the
// error reports that the trial could not run.
func (b *Bench) Try(ctx context.Context, client Client, wanted Case) (*Trial, error) {
	trial := &Trial{Client: client, Case: wanted, Skipped: client.skips[wanted.Name]}
	if wanted.recalls && client.recall == nil {
		trial.Skipped = "it is not given the recall tools here"
	}
	if wanted.only != "" && client.Package != wanted.only {
		trial.Skipped = "the case is for another client"
	}
	if _, can := connections()[client.Name]; wanted.connects && !can {
		trial.Skipped = "palimpsest connect sets it up in another row, or not at all"
	}
	if wanted.carries && !slices.Contains(carriedFrom(), client.Name) {
		trial.Skipped = "palimpsest resume is tried from other rows"
	}
	if trial.Skipped != "" {
		return trial, nil
	}
	started := time.Now()
	b.serial++
	s, err := b.session(client, wanted)
	if err != nil {
		return nil, err
	}

	trial.model = &model{client: client, play: wanted.play, bare: client.Package == "", ask: wanted.says(client)[0], work: s.work}
	at := client.at
	if at == nil {
		at = direct
	}
	double, err := at(providerdouble.Config{
		Script: trial.model.answer, Window: wanted.window, Count: b.count, BindThinking: true, LateOverflow: wanted.assumed > 0,
	})
	if err != nil {
		return nil, err
	}
	trial.judge = double.models.Judge
	provider, stopProvider, err := double.listen("127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	defer stopProvider()
	key, err := b.open(ctx, workspaceOf(wanted, b.serial, double, provider))
	if err != nil {
		return nil, fmt.Errorf("open a workspace: %w", err)
	}
	if client.brings {
		s.provider = provider
		if err := b.account.Call(ctx, http.MethodPut, "/settings", map[string]bool{"own_credentials": true}, nil); err != nil {
			return nil, fmt.Errorf("let clients bring credentials: %w", err)
		}
	}
	tap, err := newTap(b.Program)
	if err != nil {
		return nil, err
	}
	address, stopTap, err := listen(ctx, tap)
	if err != nil {
		return nil, err
	}
	defer stopTap()
	s.url, s.key = address, key

	if err := trial.converse(ctx, s); err != nil {
		return nil, err
	}
	trial.Exchanges, trial.Received, trial.Took = tap.all(), double.models.Requests(), time.Since(started)
	if trial.NetMicroUSD, err = b.net(ctx, trial); err != nil {
		return nil, err
	}
	remark, err := wanted.judge(trial)
	var own string
	own, trial.Err = trial.alwaysHolds(s.key)
	trial.Err = errors.Join(err, trial.Err)
	trial.Remark = strings.Trim(remark+"; "+own, "; ")

	return trial, nil
}

// workspaceOf is the workspace of a trial with a provider at an address.
func workspaceOf(wanted Case, serial int, double platform, provider string) programtest.Workspace {
	workspace := programtest.Workspace{
		Name: "trial" + strconv.Itoa(serial), Provider: provider, Window: cmp.Or(wanted.assumed, wanted.window), Answers: wanted.answered,
	}
	if double.keys != nil {
		workspace.Keys = double.keys(provider)
	}
	if wanted.unknown {
		workspace.Window = 0
	}
	if wanted.carries {
		workspace.Limits = map[string]any{"scopes": []string{"proxy", "recall", "read"}}
	}

	return workspace
}

// net returns a trial's savings from compression minus its cost, in millionths of a US dollar, once all of
// the trial's requests are recorded.
func (b *Bench) net(ctx context.Context, trial *Trial) (int64, error) {
	if !trial.Case.hasNet() {
		return 0, nil
	}
	const attempts, pause = 60, 250 * time.Millisecond
	for range attempts {
		var usage struct {
			Data []struct {
				Requests    int   `json:"requests"`
				NetMicroUSD int64 `json:"net_micro_usd"`
			} `json:"data"`
		}
		if err := b.account.Call(ctx, http.MethodGet, "/usage?by=day", nil, &usage); err != nil {
			return 0, fmt.Errorf("usage of the trial: %w", err)
		}
		requests, net := 0, int64(0)
		for _, day := range usage.Data {
			requests, net = requests+day.Requests, net+day.NetMicroUSD
		}
		if requests >= len(trial.Received) {
			return net, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(pause):
		}
	}

	return 0, fmt.Errorf("the requests of %s were not recorded", trial.Client.Name)
}

// open creates a workspace and returns an API key for it.
func (b *Bench) open(ctx context.Context, workspace programtest.Workspace) (key string, err error) {
	if b.account == nil {
		b.account, err = programtest.SignUp(ctx, b.Program, workspace)
	} else {
		err = b.account.Create(ctx, workspace)
	}
	if err != nil {
		return "", err
	}
	return b.account.Key, nil
}

// session creates the folders of a trial with the files to read.
func (b *Bench) session(client Client, wanted Case) (*session, error) {
	s, err := newSession(filepath.Join(b.folders, fmt.Sprintf("%03d", b.serial)))
	if err != nil {
		return nil, err
	}
	s.install, s.binary, s.guide, s.recalls, s.threads, s.terminal, s.tools = b.Install, b.Binary, b.Guide, wanted.recalls, wanted.threads, wanted.terminal, wanted.tools
	if wanted.compacts {
		s.window = client.smallWindow
	}
	if err := writeBelow(s.work, noteFile, "The word is "+noteWord+".\n"); err != nil {
		return nil, err
	}
	for i := range wanted.read() {
		if err := writeBelow(s.work, partFile(i+1), partText(i+1)); err != nil {
			return nil, err
		}
	}

	return s, nil
}

// listen serves a handler on a free port of 127.0.0.1.
func listen(ctx context.Context, handler http.Handler) (address string, stop func(), err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = server.Serve(listener) // ends with Close
	}()

	return "http://" + listener.Addr().String(), func() {
		_ = server.Close()
		<-stopped
	}, nil
}
