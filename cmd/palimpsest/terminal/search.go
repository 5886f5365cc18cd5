package terminal

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

type hitJSON struct {
	Session string    `json:"session"`
	Lane    string    `json:"lane"`
	From    int       `json:"from"`
	To      int       `json:"to"`
	Score   float64   `json:"score"`
	At      time.Time `json:"at"`
	Paths   []string  `json:"paths"`
	Snippet string    `json:"snippet"`
}

func (a *App) searchCommand() *cobra.Command {
	var asJSON bool
	var limit int
	var session, path, tool string
	command := &cobra.Command{
		Use: "search WORDS...", Short: "Search what was said in sessions", Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, words []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			query := url.Values{"q": {strings.Join(words, " ")}, "limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"session": session, "path": path, "tool": tool} {
				if value != "" {
					query.Set(name, value)
				}
			}
			var found page[hitJSON]
			if err := client.get(command.Context(), "/search", query, &found); err != nil {
				return err
			}
			if asJSON {
				return a.json(found.Data)
			}
			for _, hit := range found.Data {
				fmt.Fprintf(a.Out, "%s  messages %d to %d  %s\n", hit.Session, hit.From, hit.To-1, ago(a.Now().Sub(hit.At)))
				for line := range strings.SplitSeq(strings.TrimSpace(hit.Snippet), "\n") {
					fmt.Fprintf(a.Out, "    %s\n", oneLine(line))
				}
			}
			if len(found.Data) == 0 {
				fmt.Fprintln(a.Err, "Nothing was found.")
			}
			return nil
		},
	}
	command.Flags().IntVarP(&limit, "limit", "L", 10, "how many places")
	command.Flags().StringVar(&session, "session", "", "only in the session with this id")
	command.Flags().StringVar(&path, "path", "", "only where this file is named")
	command.Flags().StringVar(&tool, "tool", "", "only where this tool was called")
	return jsonFlag(command, &asJSON)
}

const tailPause = 2 * time.Second

func (a *App) tailCommand() *cobra.Command {
	var asJSON bool
	var session string
	command := &cobra.Command{
		Use: "tail", Short: "Follow requests as they come through the proxy", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			query := url.Values{"limit": {"50"}}
			if session != "" {
				one, err := client.find(command.Context(), session)
				if err != nil {
					return err
				}
				query.Set("session", one.ID)
			}
			return a.tail(command.Context(), client, query, asJSON)
		},
	}
	command.Flags().StringVar(&session, "session", "", "only of the session with this id")
	return jsonFlag(command, &asJSON)
}

// tail prints the newest requests and then each new one, until the context ends. It retries while the
// server is away.
func (a *App) tail(ctx context.Context, client *Client, query url.Values, asJSON bool) error {
	known := map[string]bool{}
	for first := true; ; first = false {
		var requests page[requestJSON]
		err := client.get(ctx, "/requests", query, &requests)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			fmt.Fprintln(a.Err, err)
		}
		if first && len(requests.Data) > 10 {
			for _, request := range requests.Data[10:] {
				known[request.ID] = true
			}
			requests.Data = requests.Data[:10]
		}
		for _, request := range slices.Backward(requests.Data) {
			if known[request.ID] {
				continue
			}
			known[request.ID] = true
			if err := a.printRequest(request, asJSON); err != nil {
				return err
			}
		}
		if a.Sleep(ctx, tailPause) != nil {
			return nil
		}
	}
}

func (a *App) printRequest(request requestJSON, asJSON bool) error {
	if asJSON {
		return a.jsonLine(request)
	}
	size := tokensText(int64(request.Before))
	if request.After != request.Before {
		size += " → " + tokensText(int64(request.After))
	}
	_, err := fmt.Fprintf(a.Out, "%s  %d  %-24s  %-16s  %s tokens  %d answered  %s  %.1f s\n", request.At.Local().Format(time.TimeOnly), request.Status,
		oneLine(request.Model), oneLine(request.Client), size, request.Reported.Output, money(request.CostMicro), request.DurationMS/1000)
	if err == nil && request.compacts() {
		_, err = fmt.Fprintf(a.Out, "          %s\n", Compaction{Before: request.Before, After: request.After}.line(request.Session))
	}
	return err
}
