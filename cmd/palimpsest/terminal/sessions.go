package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/pipeline/excerpts"
)

func (a *App) sessionsCommand() *cobra.Command {
	command := &cobra.Command{Use: "sessions", Short: "List sessions, and change what is sent of them"}
	command.AddCommand(a.listCommand(), a.showCommand(), a.undoCommand(), a.pinCommand(), a.releaseCommand(), a.exportCommand())
	return command
}

// newest returns the id of the most recently active session.
func (c *Client) newest(ctx context.Context) (string, error) {
	var found page[sessionJSON]
	if err := c.get(ctx, "/sessions", url.Values{"limit": {"1"}, "show": {"conversations"}}, &found); err != nil {
		return "", err
	}
	if len(found.Data) == 0 {
		return "", errors.New("there is no session yet: palimpsest connect sets up a client")
	}
	return found.Data[0].ID, nil
}

func (a *App) listCommand() *cobra.Command {
	var asJSON bool
	var limit int
	var words, client, model string
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List sessions, the most recently active first", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			server, err := a.client()
			if err != nil {
				return err
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"q": words, "client": client, "model": model} {
				if value != "" {
					query.Set(name, value)
				}
			}
			var found page[sessionJSON]
			if err := server.get(command.Context(), "/sessions", query, &found); err != nil {
				return err
			}
			if asJSON {
				return a.json(found.Data)
			}
			rows := [][]string{{"ID", "TITLE", "CLIENT", "MODEL", "REQUESTS", "COMPACTIONS", "SAVED", "LAST"}}
			for _, one := range found.Data {
				rows = append(rows, []string{
					one.ID, shorten(one.Title, 40), one.Client, one.Model, strconv.Itoa(one.Requests), strconv.Itoa(one.Epochs), money(one.NetMicroUSD), ago(a.Now().Sub(one.LastAt)),
				})
			}
			return a.table(rows)
		},
	}
	command.Flags().IntVarP(&limit, "limit", "L", 30, "how many, at most 200")
	command.Flags().StringVarP(&words, "search", "S", "", "only those whose title or id has these words")
	command.Flags().StringVar(&client, "client", "", "only of this client, such as claude-code")
	command.Flags().StringVar(&model, "model", "", "only of this model")
	return jsonFlag(command, &asJSON)
}

// onSession returns a command about one session, by its id or the client's own.
func (a *App) onSession(use, short string, more cobra.PositionalArgs, run func(ctx context.Context, client *Client, one sessionJSON, rest []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: more,
		RunE: func(command *cobra.Command, arguments []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			one, err := client.find(command.Context(), arguments[0])
			if err != nil {
				return err
			}
			return run(command.Context(), client, one, arguments[1:])
		},
	}
}

func (a *App) showCommand() *cobra.Command {
	var asJSON bool
	command := a.onSession("show SESSION", "Show a session, its threads and its compactions", cobra.ExactArgs(1), func(ctx context.Context, client *Client, one sessionJSON, _ []string) error {
		if asJSON {
			return a.json(one)
		}
		state, err := client.state(ctx, one.ID, State{}, a.Now())
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Out, "%s\n%s, %s, %s\n%s\n\n", oneLine(one.Title), oneLine(one.Client), oneLine(one.Model), plural(one.Requests, "request"), state.line(a.Now()))
		if one.PinnedAt != nil {
			fmt.Fprintf(a.Out, "pinned: it is not compacted until palimpsest sessions release %s\n\n", one.ID)
		}
		rows := [][]string{{"THREAD", "KIND", "MESSAGES", "COMPACTION", "BEFORE", "AFTER", "WHEN"}}
		for _, lane := range one.Lanes {
			if lane.Continues != "" {
				fmt.Fprintf(a.Out, "continues session %s\n\n", lane.Continues)
			}
			for _, other := range lane.Continued {
				fmt.Fprintf(a.Out, "continued in session %s\n\n", other)
			}
			rows = append(rows, []string{lane.ID, lane.Kind, strconv.Itoa(lane.Messages), "", "", "", ago(a.Now().Sub(lane.LastAt))})
			for i, epoch := range lane.Epochs {
				rows = append(rows, []string{"", "", "", strconv.Itoa(i + 1), tokensText(int64(epoch.Before)), tokensText(int64(epoch.After)), ago(a.Now().Sub(epoch.At))})
			}
		}
		return a.table(rows)
	})
	return jsonFlag(command, &asJSON)
}

type turnJSON struct {
	From  int `json:"from"`
	Level int `json:"level"`
}

type pinJSON struct {
	Lane    string `json:"lane"`
	Message int    `json:"message"`
}

// mostPins is the maximum number of pinned messages of a thread.
const mostPins = 200

// undoCommand restores the content that compactions replaced: it pins each shortened turn and orders a
// compaction, which the next request makes. The dashboard does the same for one turn.
func (a *App) undoCommand() *cobra.Command {
	return a.onSession("undo SESSION", "Put the originals back into the prompt, with the next request", cobra.ExactArgs(1), func(ctx context.Context, client *Client, one sessionJSON, _ []string) error {
		if len(one.Lanes) == 0 {
			return errNoSession
		}
		lane := one.Lanes[0] // the main lane comes first
		path := "/sessions/" + one.ID
		shortened, err := client.shortened(ctx, path, lane.ID)
		if err != nil {
			return err
		}
		if len(shortened) == 0 {
			fmt.Fprintln(a.Out, "Nothing to undo: the prompt holds the originals.")
			return nil
		}
		var pins page[pinJSON]
		if err := client.get(ctx, path+"/pins", url.Values{"lane": {lane.ID}}, &pins); err != nil {
			return err
		}
		if len(pins.Data)+len(shortened) > mostPins {
			return fmt.Errorf("the compactions shortened %d turns, and at most %d can be pinned: pin those that matter with palimpsest sessions pin, or send requests with the header X-Palimpsest-Bypass: true", len(shortened), mostPins)
		}
		for _, turn := range shortened {
			if err := client.call(ctx, http.MethodPost, path+"/pins?lane="+lane.ID, map[string]int{"message": turn.From}, nil); err != nil {
				return err
			}
		}
		if err := client.call(ctx, http.MethodPost, path+"/compact?lane="+lane.ID, map[string]string{}, nil); err != nil {
			return err
		}
		fmt.Fprintf(a.Out, "The next request of the session sends %s as they were. palimpsest sessions release %s lets them be compacted again.\n", plural(len(shortened), "turn"), one.ID)
		return nil
	})
}

// shortened returns the turns of a thread that the prompt does not hold in full.
func (c *Client) shortened(ctx context.Context, path, lane string) ([]turnJSON, error) {
	var found []turnJSON
	query := url.Values{"lane": {lane}, "limit": {"200"}}
	for range maxPages {
		var turns page[turnJSON]
		if err := c.get(ctx, path+"/turns", query, &turns); err != nil {
			return nil, err
		}
		for _, turn := range turns.Data {
			if turn.Level > 0 {
				found = append(found, turn)
			}
		}
		if turns.Next == nil {
			break
		}
		query.Set("cursor", *turns.Next)
	}
	return found, nil
}

func (a *App) pinCommand() *cobra.Command {
	return a.onSession("pin SESSION [MESSAGE...]", "Keep the whole session from being compacted, or only the turns of messages", cobra.MinimumNArgs(1), func(ctx context.Context, client *Client, one sessionJSON, messages []string) error {
		if len(messages) == 0 {
			if err := client.call(ctx, http.MethodPut, "/sessions/"+one.ID+"/pin", nil, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.Out, "Pinned the session: it is not compacted until palimpsest sessions release %s.\n", one.ID)
			return err
		}
		for _, text := range messages {
			message, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("%q is not the number of a message", text)
			}
			if err := client.call(ctx, http.MethodPost, "/sessions/"+one.ID+"/pins", map[string]int{"message": message}, nil); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(a.Out, "Pinned %s.\n", plural(len(messages), "message"))
		return err
	})
}

func (a *App) releaseCommand() *cobra.Command {
	return a.onSession("release SESSION [MESSAGE...]", "Let a pinned session or pinned turns be compacted again: all, or only the turns of messages", cobra.MinimumNArgs(1), func(ctx context.Context, client *Client, one sessionJSON, messages []string) error {
		if len(messages) == 0 && one.PinnedAt != nil {
			if err := client.call(ctx, http.MethodDelete, "/sessions/"+one.ID+"/pin", nil, nil); err != nil {
				return err
			}
			fmt.Fprintln(a.Out, "Released the session.")
		}
		path := "/sessions/" + one.ID + "/pins"
		var pins page[pinJSON]
		if err := client.get(ctx, path, nil, &pins); err != nil {
			return err
		}
		released := 0
		for _, pin := range pins.Data {
			text := strconv.Itoa(pin.Message)
			if len(messages) > 0 && !contains(messages, text) {
				continue
			}
			if err := client.call(ctx, http.MethodDelete, path+"/"+text+"?lane="+pin.Lane, nil, nil); err != nil {
				return err
			}
			released++
		}
		_, err := fmt.Fprintf(a.Out, "Released %s.\n", plural(released, "message"))
		return err
	})
}

func contains(list []string, text string) bool {
	return slices.Contains(list, text)
}

func (a *App) exportCommand() *cobra.Command {
	var format, file string
	command := a.onSession("export SESSION", "Write a session with its originals", cobra.ExactArgs(1), func(ctx context.Context, client *Client, one sessionJSON, _ []string) error {
		response, err := client.send(ctx, http.MethodGet, "/api/v1/sessions/"+one.ID+"/export?format="+url.QueryEscape(format), "", http.NoBody)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if file == "" {
			_, err := io.Copy(a.Out, response.Body)
			return err
		}
		to, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, response.Body)
		return errors.Join(err, to.Close())
	})
	command.Flags().StringVar(&format, "format", "ndjson", "ndjson, jsonl, markdown or tar")
	command.Flags().StringVarP(&file, "output", "o", "", "new file to write to, instead of the terminal")
	return command
}

// shorten returns a text in one line of at most so many characters.
func shorten(text string, most int) string { return excerpts.Start(oneLine(text), most) }

func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}
