package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Config is a whole pipeline: the modules in the order in which they run and the
// settings of each. Its names in YAML and JSON are those people depend on.
type Config struct {
	// Modules run in this order.
	Modules []string `json:"modules" yaml:"modules,flow"`

	IPC           IPCConfig           `json:"ipc"               yaml:"ipc"`
	Bridge        BridgeConfig        `json:"compaction-bridge" yaml:"compaction-bridge"`
	Rehydrator    RehydratorConfig    `json:"rehydrator"        yaml:"rehydrator"`
	Patterns      PatternsConfig      `json:"patterns"          yaml:"patterns"`
	SemanticCache SemanticCacheConfig `json:"semantic-cache"    yaml:"semantic-cache"`
}

// IPCConfig are the settings of the module ipc, which compresses the oldest turns.
type IPCConfig struct {
	// TargetUtilization is the share of the context window above which an epoch happens.
	TargetUtilization float64 `json:"targetUtilization" yaml:"targetUtilization"`

	// CompressTo is the share that an epoch compresses down to; see Goal.
	CompressTo float64 `json:"compressTo" yaml:"compressTo"`

	// MinClear is the share of the window that an epoch must free at least.
	MinClear float64 `json:"minClear" yaml:"minClear"`

	// PreserveLastTurns is how many of the newest turns stay as they are.
	PreserveLastTurns int `json:"preserveLastTurns" yaml:"preserveLastTurns"`

	// PreserveTokens is how many of the newest tokens stay as they are, whole
	// turns; it counts where it keeps more than PreserveLastTurns does.
	PreserveTokens int `json:"preserveTokens" yaml:"preserveTokens"`

	// PreserveSystem keeps the system prompt and leading system messages. No
	// level touches them yet, so that false changes nothing so far.
	PreserveSystem bool `json:"preserveSystem" yaml:"preserveSystem"`

	// ArchiveToBlob keeps the originals of what is compressed. Without it there
	// are no new epochs.
	ArchiveToBlob bool `json:"archiveToBlob" yaml:"archiveToBlob"`

	// DeepestLevel is the level that no turn goes below; 0 turns compression off.
	DeepestLevel int `json:"deepestLevel" yaml:"deepestLevel"`

	// BlockTokens caps all L3 text of a lane, in o200k tokens.
	BlockTokens int `json:"blockTokens" yaml:"blockTokens"`

	// ObservationMasking leaves a placeholder of tool results at L1, not their start.
	ObservationMasking bool `json:"observationMasking" yaml:"observationMasking"`

	// LLMCompression has a model write, in the background, what stands for the
	// oldest turns in place of L2 and L3.
	LLMCompression LLMCompression `json:"llmCompression" yaml:"llmCompression"`

	// IdleUtilization is the share above which an epoch is planned in the background
	// and made on the first request after the provider's cache has gone cold.
	IdleUtilization float64 `json:"idleUtilization" yaml:"idleUtilization"`

	// ContextWindow is the window to assume in place of the model's.
	ContextWindow Window `json:"contextWindow" yaml:"contextWindow"`

	// KeepLastLadder are the numbers of turns that the preserved tail shrinks to,
	// one after the other, where an epoch would otherwise free too little. Behind
	// its end the package ipc has further steps.
	KeepLastLadder []int `json:"keepLastLadder" yaml:"keepLastLadder,flow"`

	// MaxBytes is how many bytes a prompt may have. Above it media are replaced by
	// placeholders, the oldest first, however few tokens they are. Anthropic takes
	// 32 MB; 0: no limit.
	MaxBytes int `json:"maxBytes" yaml:"maxBytes"`

	// WarnAfterEpochs is the number of epochs from which on people are warned of a
	// lane, in the answers' X-Palimpsest-Warning and on its page; 0: never.
	WarnAfterEpochs int `json:"warnAfterEpochs" yaml:"warnAfterEpochs"`

	// Trigger says what decides when an epoch happens below TargetUtilization: TriggerWindow
	// or TriggerBreakEven.
	Trigger string `json:"trigger" yaml:"trigger"`

	// MinContext is the size in tokens up to which TriggerBreakEven touches no prompt.
	MinContext int `json:"minContext" yaml:"minContext"`

	// Repeats says what becomes of a tool result that an earlier one has said already:
	// RepeatsKeep or RepeatsPoint.
	Repeats string `json:"repeats" yaml:"repeats"`
}

// What decides when an epoch happens. TargetUtilization is the ceiling in both.
const (
	// TriggerWindow acts for the window alone.
	TriggerWindow = "window"
	// TriggerBreakEven acts as soon as reading what an epoch would remove has cost as much
	// as the epoch.
	TriggerBreakEven = "break-even"
)

// What becomes of lines of a new tool result that an earlier one in the prompt has.
const (
	// RepeatsKeep leaves them.
	RepeatsKeep = "keep"
	// RepeatsPoint puts a pointer to the earlier result in their place.
	RepeatsPoint = "point"
)

// OtherTrigger returns the trigger that is not the one given.
func OtherTrigger(trigger string) string {
	if trigger == TriggerBreakEven {
		return TriggerWindow
	}
	return TriggerBreakEven
}

// Goal returns the share of the window that an epoch compresses down to:
// CompressTo, or less where that would leave less room than twice MinClear below
// TargetUtilization, but never less than half of TargetUtilization.
func (c IPCConfig) Goal() float64 {
	room := max(c.TargetUtilization-2*c.MinClear, c.TargetUtilization/2)
	return min(c.CompressTo, room)
}

// WarnsAfter returns from how many epochs of a lane on people are warned of it; 0: never.
// By TriggerBreakEven many epochs are what was asked for.
func (c IPCConfig) WarnsAfter() int {
	if c.Trigger == TriggerBreakEven {
		return 0
	}
	return c.WarnAfterEpochs
}

// IdleAbove returns how many tokens a prompt must have more than, of limit, for an epoch
// on a cold cache.
func (c IPCConfig) IdleAbove(limit int) int {
	if c.Trigger == TriggerBreakEven {
		return c.MinContext
	}
	return int(c.IdleUtilization * float64(limit))
}

// BridgeConfig are the settings of the module compaction-bridge.
type BridgeConfig struct {
	// PreserveLastTurns is how many of the last turns before a client's compaction
	// come back if the client dropped them.
	PreserveLastTurns int `json:"preserveLastTurns" yaml:"preserveLastTurns"`

	// PreserveActiveFiles puts the content of the files at work back.
	PreserveActiveFiles bool `json:"preserveActiveFiles" yaml:"preserveActiveFiles"`

	// PreserveDirectives puts standing orders back that the client's summary lost.
	PreserveDirectives bool `json:"preserveDirectives" yaml:"preserveDirectives"`

	// DetectionThreshold is the score from which on a client that is not known is
	// taken to have compacted itself.
	DetectionThreshold float64 `json:"detectionThreshold" yaml:"detectionThreshold"`

	// BlobPrefix is the prefix of archive objects in a directory or bucket.
	BlobPrefix string `json:"blobPrefix" yaml:"blobPrefix"`

	// MaxTokens bounds the block that is put into the prompt, in o200k tokens.
	MaxTokens int `json:"maxTokens" yaml:"maxTokens"`

	// Placement says where the block goes: "turn" or "system".
	Placement string `json:"placement" yaml:"placement"`

	// ClientCompaction says what happens to a client's own request for a summary: it
	// passes to the provider, or is answered without it where a compaction is ready.
	ClientCompaction string `json:"clientCompaction" yaml:"clientCompaction"`
}

// The values of BridgeConfig.ClientCompaction.
const (
	ClientCompactionPass   = "pass"
	ClientCompactionAnswer = "answer"
)

// RehydratorConfig are the settings of the module rehydrator, which brings turns back
// that someone refers to.
type RehydratorConfig struct {
	TriggerPhrases      []string `json:"triggerPhrases"      yaml:"triggerPhrases"`
	MaxRehydrated       int      `json:"maxRehydrated"       yaml:"maxRehydrated"`
	SearchDepthDays     int      `json:"searchDepthDays"     yaml:"searchDepthDays"`
	SimilarityThreshold float64  `json:"similarityThreshold" yaml:"similarityThreshold"`
	MaxTokens           int      `json:"maxTokens"           yaml:"maxTokens"`
	Scope               string   `json:"scope"               yaml:"scope"`
	Placement           string   `json:"placement"           yaml:"placement"`

	// EmbeddingModel is a model of the workspace's own provider with which its archive
	// is embedded and searched beside the text; empty if none. It is the workspace's: what
	// a key or a request sets here counts for nothing.
	EmbeddingModel string `json:"embeddingModel" yaml:"embeddingModel"`
}

// PatternsConfig are the settings of the module patterns, which puts into a prompt
// what a team has learnt in earlier sessions.
type PatternsConfig struct {
	// MaxInjected is how many patterns a lane gets at most.
	MaxInjected int `json:"maxInjected" yaml:"maxInjected"`

	// MinSuccessRate is the share of lanes in which a pattern must have helped once
	// it was used in a few.
	MinSuccessRate float64 `json:"minSuccessRate" yaml:"minSuccessRate"`

	// Review is "required", where people approve what is found, or "auto", where
	// what was met in several sessions is used without.
	Review string `json:"review" yaml:"review"`

	// Placement is where patterns are put: "turn" or "system".
	Placement string `json:"placement" yaml:"placement"`
}

// SemanticCacheConfig are the settings of the module semantic-cache, which answers a
// single question with the answer to the same one.
type SemanticCacheConfig struct {
	// Similarity is what the embeddings of two texts must reach before one's answer
	// is given to the other: the cosine, from 0 to 1.
	Similarity float64 `json:"similarity" yaml:"similarity"`

	// TTLSeconds is how old an answer may be that is given again.
	TTLSeconds int `json:"ttlSeconds" yaml:"ttlSeconds"`

	// EmbeddingModel is a model of the workspace's own provider; empty: only the very
	// same request is answered.
	EmbeddingModel string `json:"embeddingModel" yaml:"embeddingModel"`

	// Scope says who shares answers: "workspace", "key" or "session".
	Scope string `json:"scope" yaml:"scope"`
}

// Window is a context window in tokens; 0, written "auto", is the model's own.
type Window int

// Tokens returns the window in tokens; 0: the model's own.
func (w Window) Tokens() int { return int(w) }

// MarshalYAML implements yaml.Marshaler.
func (w Window) MarshalYAML() (any, error) {
	if w == 0 {
		return "auto", nil
	}
	return int(w), nil
}

// MarshalJSON implements json.Marshaler.
func (w Window) MarshalJSON() ([]byte, error) {
	if w == 0 {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(int(w))
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *Window) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == "auto" {
		*w = 0
		return nil
	}
	return node.Decode((*int)(w))
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *Window) UnmarshalJSON(data []byte) error {
	if string(data) == `"auto"` {
		*w = 0
		return nil
	}
	return json.Unmarshal(data, (*int)(w))
}

// SameModel is the model of LLMCompression that stands for the conversation's own.
const SameModel = "same"

// LLMCompression says which model writes summaries, and how; the zero value,
// written "false", none.
type LLMCompression struct {
	Model     string        // who writes: a model of the conversation's provider, or SameModel
	Prompt    string        // what is asked for in place of our own words; empty: our own
	MaxTokens int           // of the answer; 0: as many as the summary may have
	Timeout   time.Duration // for the whole of it; 0: 30 s

	// ReserveTokens has a summary written as soon as a prompt leaves fewer tokens
	// than these of what it may have; 0: after each epoch only.
	ReserveTokens int

	// KeepRecentTokens are the newest tokens that such a summary leaves out; 0: as
	// many as PreserveTokens says.
	KeepRecentTokens int
}

// llmCompression is how LLMCompression is written where it is on.
type llmCompression struct {
	Model     string `json:"model"               yaml:"model"`
	Prompt    string `json:"prompt,omitempty"    yaml:"prompt,omitempty"`
	MaxTokens int    `json:"maxTokens,omitempty" yaml:"maxTokens,omitempty"`
	Timeout   string `json:"timeout,omitempty"   yaml:"timeout,omitempty"`

	ReserveTokens    int `json:"reserveTokens,omitempty"    yaml:"reserveTokens,omitempty"`
	KeepRecentTokens int `json:"keepRecentTokens,omitempty" yaml:"keepRecentTokens,omitempty"`
}

func (l LLMCompression) written() llmCompression {
	written := llmCompression{
		Model: l.Model, Prompt: l.Prompt, MaxTokens: l.MaxTokens,
		ReserveTokens: l.ReserveTokens, KeepRecentTokens: l.KeepRecentTokens,
	}
	if l.Timeout > 0 {
		written.Timeout = l.Timeout.String()
	}
	return written
}

// MarshalYAML implements yaml.Marshaler.
func (l LLMCompression) MarshalYAML() (any, error) {
	if l == (LLMCompression{}) {
		return false, nil
	}
	return l.written(), nil
}

// MarshalJSON implements json.Marshaler.
func (l LLMCompression) MarshalJSON() ([]byte, error) {
	if l == (LLMCompression{}) {
		return []byte("false"), nil
	}
	return json.Marshal(l.written())
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *LLMCompression) UnmarshalJSON(data []byte) error {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil || len(node.Content) == 0 {
		return fmt.Errorf("llmCompression: %w", err)
	}
	return l.UnmarshalYAML(node.Content[0])
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *LLMCompression) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Value == "false" {
		*l = LLMCompression{}
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return errors.New("is neither false nor {model, prompt, maxTokens, timeout, reserveTokens, keepRecentTokens}")
	}
	for i := 0; i < len(node.Content); i += 2 {
		name := node.Content[i].Value
		switch name {
		case "model", "prompt", "timeout":
		case "maxTokens", "reserveTokens", "keepRecentTokens":
			if number, has := fraction(node.Content[i+1]); has { // the decoder would cut it off
				return fmt.Errorf("%s %q must be a whole number", name, number)
			}
		default:
			return fmt.Errorf("%q is unknown; known are model, prompt, maxTokens, timeout, reserveTokens, keepRecentTokens", name)
		}
	}
	var written llmCompression
	if err := node.Decode(&written); err != nil {
		return err
	}
	*l = LLMCompression{
		Model: written.Model, Prompt: written.Prompt, MaxTokens: written.MaxTokens,
		ReserveTokens: written.ReserveTokens, KeepRecentTokens: written.KeepRecentTokens,
	}
	if written.Timeout == "" {
		return nil
	}
	timeout, err := time.ParseDuration(written.Timeout)
	if err != nil {
		return fmt.Errorf("timeout %q is no duration such as 30s", written.Timeout)
	}
	l.Timeout = timeout
	return nil
}

// DefaultConfig returns the pipeline of a workspace that has set nothing.
func DefaultConfig() Config {
	return Config{
		Modules: []string{"ipc", "compaction-bridge", "rehydrator", "patterns"},
		IPC: IPCConfig{
			TargetUtilization: 0.75,
			CompressTo:        0.25,
			MinClear:          0.10,
			PreserveLastTurns: 5,
			PreserveTokens:    20_000,
			PreserveSystem:    true,
			ArchiveToBlob:     true,
			DeepestLevel:      3,
			BlockTokens:       8_000,
			IdleUtilization:   0.50,
			KeepLastLadder:    []int{16, 12, 8, 6, 3, 1},
			MaxBytes:          20 << 20,
			WarnAfterEpochs:   3,
			Trigger:           TriggerWindow,
			MinContext:        50_000,
			Repeats:           RepeatsKeep,
		},
		Bridge: BridgeConfig{
			PreserveLastTurns:   5,
			PreserveActiveFiles: true,
			PreserveDirectives:  true,
			DetectionThreshold:  0.6,
			BlobPrefix:          "evictions",
			MaxTokens:           6_000,
			Placement:           "turn",
			ClientCompaction:    ClientCompactionPass,
		},
		Rehydrator: RehydratorConfig{
			TriggerPhrases:      []string{},
			MaxRehydrated:       5,
			SearchDepthDays:     90,
			SimilarityThreshold: 0.7,
			MaxTokens:           4_000,
			Scope:               "key",
			Placement:           "turn",
		},
		Patterns:      PatternsConfig{MaxInjected: 5, MinSuccessRate: 0.6, Review: "required", Placement: "turn"},
		SemanticCache: SemanticCacheConfig{Similarity: 0.92, TTLSeconds: 3600, EmbeddingModel: "text-embedding-3-small", Scope: "workspace"},
	}
}

// YAML returns the whole config as it can be saved and read again.
func (c Config) YAML() string {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(c); err != nil {
		return "# " + err.Error() + "\n" // only a field of a new type without a form in YAML
	}
	return out.String()
}

// Invalid is a value in a config that someone can mend.
type Invalid struct {
	Field   string // path of the field: "ipc.targetUtilization"; empty: the whole document
	Message string // the value, what is wrong with it and what is allowed
	Line    int    // of the document, from 1; 0: it has no place there
}

// Error implements error.
func (e Invalid) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// Modules are the modules of the product.
func Modules() []string {
	return []string{"ipc", "compaction-bridge", "rehydrator", "patterns", "semantic-cache"}
}

// Runs reports whether the config names a module.
func (c Config) Runs(name string) bool { return slices.Contains(c.Modules, name) }

// ParseModules reads a list of modules separated by commas; "none" is an empty
// one. The error is an Invalid.
func ParseModules(list string) ([]string, error) {
	if strings.TrimSpace(list) == "none" {
		return []string{}, nil
	}
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	if message := checkModules(names); message != "" {
		return nil, Invalid{Field: "modules", Message: message}
	}
	return names, nil
}
