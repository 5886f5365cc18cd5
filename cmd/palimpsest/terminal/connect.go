package terminal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/cmd/palimpsest/credential"
)

// connectFlags are the flags of the commands that set clients up.
type connectFlags struct {
	server, key                     string
	all, dry, project, yes, machine bool
}

func (f *connectFlags) addServer(command *cobra.Command) {
	command.Flags().StringVar(&f.server, "server", "", "address of the proxy; default: that of palimpsest login")
	command.Flags().StringVar(&f.key, "key", "", "API key; default: that of palimpsest login")
}

// ClientCommands returns the commands that set clients up, start them and serve them.
func ClientCommands() []*cobra.Command {
	return []*cobra.Command{connectCommand(), disconnectCommand(), runCommand(), mcpCommand()}
}

func connectCommand() *cobra.Command {
	var flags connectFlags
	command := &cobra.Command{
		Use: "connect [CLIENT]", Short: "Set a client up to use the proxy: " + clientIDs(),
		Long: "Shows what would change in the client's own files, asks, and writes it. Comments, order and formatting stay, and palimpsest disconnect takes it back.",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeClients,
		RunE: func(command *cobra.Command, arguments []string) error {
			connector, chosen, err := flags.choose(arguments)
			if err != nil {
				return err
			}
			setup, err := flags.setup(command)
			if err != nil {
				return err
			}
			return connectAll(command, connector, chosen, setup, flags)
		},
	}
	flags.addServer(command)
	command.Flags().BoolVar(&flags.all, "all", false, "every client that is found on this machine")
	command.Flags().BoolVar(&flags.dry, "dry-run", false, "show the changes and write nothing")
	command.Flags().BoolVar(&flags.project, "project", false, "write into the project's files in the working folder, without a key")
	command.Flags().BoolVar(&flags.yes, "yes", false, "write without asking")
	command.Flags().BoolVar(&flags.machine, "json", false, "print JSON; asks nothing, so it writes only with --yes")
	return command
}

func clientIDs() string {
	var ids []string
	for _, client := range connect.Clients() {
		ids = append(ids, client.ID)
	}
	return strings.Join(ids, ", ")
}

func completeClients(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return strings.Split(clientIDs(), ", "), cobra.ShellCompDirectiveNoFileComp
}

// choose returns the selected clients.
func (f *connectFlags) choose(arguments []string) (*connect.Connector, []connect.Client, error) {
	place, err := connect.Here()
	if err != nil {
		return nil, nil, err
	}
	connector := &connect.Connector{Place: place}
	switch {
	case f.all == (len(arguments) == 1):
		return nil, nil, fmt.Errorf("name one client, or give --all: there are %s", clientIDs())
	case f.all:
		found := connector.Found()
		if len(found) == 0 {
			return nil, nil, errors.New("no client was found on this machine: name one")
		}
		return connector, found, nil
	}
	client, err := connect.ByName(arguments[0])
	return connector, []connect.Client{client}, err
}

// setup returns the server and key for clients, from the flags, the environment, or the saved login.
func (f *connectFlags) setup(command *cobra.Command) (connect.Setup, error) {
	login, err := credential.Load()
	if errors.Is(err, credential.ErrNone) && f.server != "" && f.key == "" {
		login, err = logIn(command, f.server)
	}
	if f.server != "" && f.key != "" {
		login, err = credential.Login{Server: strings.TrimRight(f.server, "/"), Key: f.key}, nil
	}
	if err != nil {
		return connect.Setup{}, err
	}
	if f.server != "" && strings.TrimRight(f.server, "/") != login.Server || f.key != "" && f.key != login.Key {
		return connect.Setup{}, errors.New("give both --server and --key, or neither")
	}
	if at, err := url.Parse(login.Server); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return connect.Setup{}, fmt.Errorf("%q is not an address such as https://llm.example.com", login.Server)
	}
	program, err := connect.ThisProgram()
	if err != nil {
		return connect.Setup{}, err
	}
	saved := f.key == "" && os.Getenv("PALIMPSEST_KEY") == ""
	return connect.Setup{Server: login.Server, Key: login.Key, Saved: saved, Program: program, InProject: f.project}, nil
}

// logIn runs palimpsest login.
func logIn(command *cobra.Command, server string) (credential.Login, error) {
	login, _, err := command.Root().Find([]string{"login"})
	if err != nil {
		return credential.Login{}, err
	}
	login.SetContext(command.Context())
	if err := login.RunE(login, []string{server}); err != nil {
		return credential.Login{}, err
	}
	return credential.Load()
}

// connected is the result for one client, as JSON.
type connected struct {
	Client string        `json:"client"`
	Done   bool          `json:"done"` // the client is set up
	Files  []fileChanged `json:"files"`
	Notes  []string      `json:"notes,omitempty"`
	Steps  []string      `json:"steps,omitempty"`
	Error  string        `json:"error,omitempty"`
}

type fileChanged struct {
	Path string `json:"path"`
	Diff string `json:"diff"`
}

func connectAll(command *cobra.Command, connector *connect.Connector, chosen []connect.Client, setup connect.Setup, flags connectFlags) error {
	out := command.OutOrStdout()
	answers := bufio.NewReader(command.InOrStdin())
	var results []connected
	var failed []error
	for _, client := range chosen {
		plan, err := connector.Plan(client, setup)
		result := connected{Client: client.ID, Files: []fileChanged{}, Notes: plan.Notes, Steps: plan.Steps}
		for _, change := range plan.Changes {
			result.Files = append(result.Files, fileChanged{change.Target(), change.Diff()})
		}
		result.Done = err == nil && !plan.Needed()
		if err == nil && !flags.machine {
			show(out, plan)
		}
		if err == nil && plan.Needed() && !flags.dry && flags.wants(out, answers) {
			err = connector.Apply(plan)
			result.Done = err == nil
			if err == nil && !flags.machine {
				fmt.Fprintf(out, "%s is connected to %s. palimpsest disconnect %s takes it back.\n", client.Title, setup.Server, client.ID)
			}
		}
		if err != nil {
			result.Error = err.Error()
			failed = append(failed, fmt.Errorf("%s: %w", client.Title, err))
		}
		results = append(results, result)
	}
	if flags.machine {
		if err := printJSON(out, results); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

func printJSON[T any](out io.Writer, value T) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// wants asks whether to write the changes just shown.
func (f *connectFlags) wants(out io.Writer, answers *bufio.Reader) bool {
	if f.yes || f.machine {
		return f.yes
	}
	fmt.Fprint(out, "Write this? [y/N] ")
	answer, err := answers.ReadString('\n')
	if err != nil {
		fmt.Fprintln(out, "\nNothing was written: give --yes where no one can answer.")
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// show prints a plan.
func show(out io.Writer, plan connect.Plan) {
	fmt.Fprintln(out, plan.Client.Title)
	for _, change := range plan.Changes {
		diff := change.Diff()
		if diff == "" {
			fmt.Fprintf(out, "%s stays as it is.\n", change.Target())
			continue
		}
		fmt.Fprint(out, diff)
		for _, entry := range change.Entries {
			if entry.Why != "" {
				fmt.Fprintf(out, "  %s: %s\n", strings.Join(entry.Path, "."), entry.Why)
			}
		}
	}
	for _, note := range plan.Notes {
		fmt.Fprintln(out, "Note:", note)
	}
	for _, step := range plan.Steps {
		fmt.Fprintln(out, "-", step)
	}
}

func disconnectCommand() *cobra.Command {
	var machine bool
	command := &cobra.Command{
		Use: "disconnect [CLIENT]", Short: "Take back what connect changed, for one client or for all",
		Long: "Gives each file back as it was, byte for byte. If a file has changed since, only what connect put in is taken out.",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeClients,
		RunE: func(command *cobra.Command, arguments []string) error {
			place, err := connect.Here()
			if err != nil {
				return err
			}
			id := ""
			if len(arguments) == 1 {
				client, err := connect.ByName(arguments[0])
				if err != nil {
					return err
				}
				id = client.ID
			}
			restored, err := (&connect.Connector{Place: place}).Disconnect(id)
			if machine {
				return errors.Join(err, printJSON(command.OutOrStdout(), restored))
			}
			if len(restored) == 0 && err == nil {
				fmt.Fprintln(command.OutOrStdout(), "Nothing was connected.")
			}
			for _, file := range restored {
				fmt.Fprintln(command.OutOrStdout(), describeRestored(file))
			}
			return err
		},
	}
	command.Flags().BoolVar(&machine, "json", false, "print JSON")
	return command
}

func describeRestored(file connect.Restored) string {
	switch {
	case file.Whole:
		return file.Path + " is as it was before."
	case len(file.Left) > 0:
		return fmt.Sprintf("%s had changed: what connect put in was taken out, except for %s, which someone has changed since.", file.Path, strings.Join(file.Left, ", "))
	}
	return file.Path + " had changed: what connect put in was taken out, and the rest stays."
}

func runCommand() *cobra.Command {
	var flags connectFlags
	command := &cobra.Command{
		Use: "run CLIENT [-- ARGUMENT…]", Short: "Start a client that uses the proxy for one run, without changing its files",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeClients,
		RunE: func(command *cobra.Command, arguments []string) error {
			connector, chosen, err := flags.choose(arguments[:1])
			if err != nil {
				return err
			}
			setup, err := flags.setup(command)
			if err != nil {
				return err
			}
			arguments = arguments[1:]
			if len(arguments) > 0 && arguments[0] == "--" {
				arguments = arguments[1:]
			}
			return connector.Run(chosen[0], setup, arguments)
		},
	}
	command.Flags().SetInterspersed(false)
	flags.addServer(command)
	return command
}

// keyFlags select a client's key.
type keyFlags struct{ server, file string }

func (f *keyFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&f.server, "server", "", "address of the proxy; default: that of palimpsest login")
	command.Flags().StringVar(&f.file, "file", "", "file that holds the key; default: that of palimpsest login")
}

// login returns the server and the key to use.
func (f *keyFlags) login() (credential.Login, error) {
	if f.file != "" {
		key, err := os.ReadFile(f.file)
		if err != nil {
			return credential.Login{}, fmt.Errorf("read the key: %w; run palimpsest connect again", err)
		}
		return credential.Login{Server: f.server, Key: strings.TrimSpace(string(key))}, nil
	}
	login, err := credential.Load()
	if err != nil {
		return credential.Login{}, err
	}
	if f.server != "" && f.server != login.Server {
		return credential.Login{}, fmt.Errorf("the login is for %s and not for %s: run palimpsest login %s, or palimpsest connect again", login.Server, f.server, f.server)
	}
	return login, nil
}

// KeyShowCommand prints the key of the login.
func KeyShowCommand() *cobra.Command {
	var flags keyFlags
	command := &cobra.Command{
		Use: "show", Short: "Print the API key of palimpsest login; clients ask for it", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			login, err := flags.login()
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), login.Key)
			return nil
		},
	}
	flags.add(command)
	return command
}

func mcpCommand() *cobra.Command {
	var flags keyFlags
	command := &cobra.Command{
		Use: "mcp", Short: "Be the MCP server of the recall tools for a client that starts it", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			login, err := flags.login()
			if err != nil {
				return err
			}
			return connect.Recall(command.Context(), login.Server, login.Key, command.InOrStdin(), command.OutOrStdout())
		},
	}
	flags.add(command)
	return command
}
