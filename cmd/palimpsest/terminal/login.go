package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/cmd/palimpsest/credential"
)

// clientID is this program's name as an OAuth client.
const clientID = "palimpsest"

const slower = 5 * time.Second // RFC 8628 adds it to the pause for each slow_down

func (a *App) loginCommand() *cobra.Command {
	var machine string
	command := &cobra.Command{
		Use: "login URL", Short: "Log in to a server: a page in your browser asks you, and this machine gets an API key",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			server, err := serverOf(arguments[0])
			if err != nil {
				return err
			}
			if machine == "" {
				host, err := os.Hostname()
				if err != nil {
					return fmt.Errorf("find this machine's name (give one with --name): %w", err)
				}
				machine = host
			}
			return a.login(command.Context(), server, machine)
		},
	}
	command.Flags().StringVar(&machine, "name", "", "name of the API key, instead of the machine's name")
	return command
}

// serverOf returns the base URL of a server, which must use TLS unless it is on this machine.
func serverOf(typed string) (string, error) {
	if !strings.Contains(typed, "://") {
		typed = "https://" + typed
	}
	parsed, err := url.Parse(typed)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return "", fmt.Errorf("%q is not an address such as https://palimpsest.example.com", typed)
	}
	if parsed.Scheme == "http" && !isLoopback(parsed.Hostname()) {
		return "", errors.New("the key would cross the network readable: use https:// (http:// is for a server on this machine)")
	}
	return strings.TrimRight(parsed.Scheme+"://"+parsed.Host+parsed.Path, "/"), nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

type deviceCodes struct {
	Device   string `json:"device_code"`
	User     string `json:"user_code"`
	Page     string `json:"verification_uri"`
	Expires  int    `json:"expires_in"`
	Interval int    `json:"interval"`
}

type token struct {
	Secret    string `json:"access_token"`
	KeyID     string `json:"key_id"`
	Workspace struct{ Name string }
	Error     string `json:"error"`
}

// login waits until the user allows this machine, and saves its key.
func (a *App) login(ctx context.Context, server, machine string) error {
	client := &Client{server: server, http: a.HTTP}
	var codes deviceCodes
	if _, err := client.form(ctx, "/login/device", url.Values{"client_id": {clientID}, "machine": {machine}}, &codes); err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "Open %s in a browser, and type the code\n\n    %s\n\nIt works for %d minutes. Waiting…\n", oneLine(codes.Page), oneLine(codes.User), codes.Expires/60)
	given, err := a.awaitToken(ctx, client, codes)
	if err != nil {
		return err
	}
	before, beforeErr := a.Logins.Load()
	if err := a.Logins.Save(credential.Login{Server: server, Workspace: given.Workspace.Name, Key: given.Secret, KeyID: given.KeyID}); err != nil {
		return err
	}
	if beforeErr == nil {
		rekey(a, before, server, given.Secret)
	}
	if beforeErr == nil && before.KeyID != "" { // of the previous login, not of the environment
		if err := a.revoke(ctx, before); err != nil {
			fmt.Fprintf(a.Err, "The key of the login before is not revoked (%v): revoke it under API keys.\n", err)
		}
	}
	if a.Env("PALIMPSEST_KEY") != "" {
		fmt.Fprintln(a.Err, "PALIMPSEST_KEY is set and wins over this login: unset it.")
	}
	fmt.Fprintf(a.Out, "Logged in to %s, workspace %s. The key %q is under API keys there; palimpsest logout revokes it.\n", server, oneLine(given.Workspace.Name), oneLine(machine))
	return nil
}

// rekey replaces the previous key in clients' files with the new one. A key is never given to another
// server.
func rekey(a *App, before credential.Login, server, key string) {
	if before.Server != server {
		fmt.Fprintf(a.Err, "Clients that are connected to %s stay so: palimpsest connect --all connects them to %s.\n", before.Server, server)
		return
	}
	place, err := a.Here()
	var changed []string
	if err == nil {
		changed, err = (&connect.Connector{Place: place}).Rekey(before.Key, key)
	}
	for _, path := range changed {
		fmt.Fprintf(a.Err, "The new key stands in %s.\n", path)
	}
	if err != nil {
		fmt.Fprintf(a.Err, "Not every client has the new key (%v): run palimpsest connect --all.\n", err)
	}
}

// awaitToken polls for the token until the user has decided.
func (a *App) awaitToken(ctx context.Context, client *Client, codes deviceCodes) (token, error) {
	pause := time.Duration(cmp.Or(codes.Interval, 5)) * time.Second
	end := a.Now().Add(time.Duration(codes.Expires) * time.Second)
	for {
		if err := a.Sleep(ctx, pause); err != nil {
			return token{}, err
		}
		var given token
		status, err := client.form(ctx, "/login/token", url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {clientID}, "device_code": {codes.Device},
		}, &given)
		switch {
		case errors.Is(err, errUnreachable) && a.Now().Before(end):
			pause += slower // section 3.5: slow down after a failed connection
		case err != nil:
			return token{}, err
		case status == http.StatusOK && given.Secret != "":
			return given, nil
		case given.Error == "slow_down":
			pause += slower
		case given.Error == "authorization_pending":
		case given.Error == "access_denied":
			return token{}, errors.New("the login was denied, or your role may not create API keys; ask an owner or admin of the workspace")
		case given.Error == "expired_token":
			return token{}, errors.New("the code has expired: run palimpsest login again")
		default:
			return token{}, fmt.Errorf("the server answered %d %s", status, oneLine(given.Error))
		}
	}
}

// form sends a form to a path below /api/v1. It decodes the answer, or an OAuth error, into into.
func (c *Client) form(ctx context.Context, path string, values url.Values, into any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server+"/api/v1"+path, strings.NewReader(values.Encode()))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := c.http.Do(request)
	if err != nil {
		return 0, unreachable(c.server, err)
	}
	defer response.Body.Close()
	_, wantsError := into.(*token)
	if response.StatusCode != http.StatusOK && (!wantsError || response.StatusCode != http.StatusBadRequest) {
		if response.StatusCode == http.StatusNotFound {
			return 0, fmt.Errorf("%s has no login for terminals: check the address, or the server is older than this program", c.server)
		}
		return 0, problemOf(response)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return 0, fmt.Errorf("%s does not answer as a Palimpsest server does: check the address", c.server)
	}
	return response.StatusCode, nil
}

func (a *App) logoutCommand() *cobra.Command {
	var local bool
	command := &cobra.Command{
		Use: "logout", Short: "Revoke this machine's API key and forget it", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			login, err := a.Logins.Load()
			if err != nil {
				return err
			}
			if login.KeyID == "" {
				return errors.New("the key comes from PALIMPSEST_KEY: unset it, and revoke it under API keys")
			}
			if !local {
				if err := a.revoke(command.Context(), login); err != nil {
					return fmt.Errorf("the key is not revoked: %w (--local forgets it all the same)", err)
				}
			}
			if err := a.Logins.Delete(); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "Logged out of %s.\n", login.Server)
			return nil
		},
	}
	command.Flags().BoolVar(&local, "local", false, "forget the key without asking the server to revoke it")
	return command
}

// revoke revokes the key of a login. A key that no longer works counts as revoked.
func (a *App) revoke(ctx context.Context, login credential.Login) error {
	client := &Client{server: login.Server, key: login.Key, http: a.HTTP}
	err := client.call(ctx, http.MethodDelete, "/keys/self", nil, nil)
	if problem, is := errors.AsType[Problem](err); is && problem.Status == http.StatusUnauthorized {
		return nil
	}
	return err
}
