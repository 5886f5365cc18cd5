package settings

import (
	"errors"
	"fmt"
	"strconv"

	"palimpsest/tenants/identity"
)

// The limits on sign-ups per place and hour, and on workspaces per user.
const (
	defaultSignUps    = 10
	maxSignUps        = 10_000
	defaultWorkspaces = 20
	maxWorkspaces     = 10_000
)

// SignUp holds the settings for sign-ups.
type SignUp struct {
	Open             identity.SignUpPolicy // PALIMPSEST_SIGNUP
	Domains          []string              // PALIMPSEST_SIGNUP_DOMAINS
	RefuseDisposable bool                  // PALIMPSEST_SIGNUP_DISPOSABLE
	Blocked          []string              // PALIMPSEST_SIGNUP_BLOCK_DOMAINS
	Tells            *bool                 // PALIMPSEST_SIGNUP_TELLS; nil if not set
	PerPlace         int                   // PALIMPSEST_SIGNUPS_PER_PLACE
	Workspaces       int                   // PALIMPSEST_WORKSPACES_PER_PERSON; 0: any number
}

// quietSignUps reports whether sign-up responses hide if an address is already known. By default they do if
// mails are sent or verified addresses are required. Otherwise no mail could give the user the real answer.
func (c Config) quietSignUps() bool {
	if c.Accounts.SignUp.Tells != nil {
		return !*c.Accounts.SignUp.Tells
	}
	return c.Accounts.SMTPURL != "" || c.Accounts.RequireVerifiedEmail
}

// SignUps returns the policy for sign-ups.
func (c Config) SignUps() identity.SignUps {
	set := c.Accounts.SignUp
	return identity.SignUps{
		Open: set.Open, Allowed: set.Domains, RefuseDisposable: set.RefuseDisposable, Blocked: set.Blocked,
		PerPlace: set.PerPlace, Workspaces: set.Workspaces, Quiet: c.quietSignUps(),
	}
}

// signUpSettings lists the settings for sign-ups and for limits on incoming requests.
func signUpSettings() []setting {
	domains := func(field func(*Config) *[]string) func(*Config, string) error {
		return func(config *Config, value string) error {
			parsed, err := identity.ParseDomains(value)
			*field(config) = parsed
			return err
		}
	}
	return []setting{
		{"PALIMPSEST_SIGNUP", func(c *Config, value string) error {
			switch c.Accounts.SignUp.Open = identity.SignUpPolicy(value); c.Accounts.SignUp.Open {
			case identity.OpenToAll, identity.OpenToInvited, identity.OpenToDomains:
				return nil
			}
			return errors.New("must be open, invite or domains")
		}},
		{"PALIMPSEST_SIGNUP_DOMAINS", domains(func(c *Config) *[]string { return &c.Accounts.SignUp.Domains })},
		{"PALIMPSEST_SIGNUP_BLOCK_DOMAINS", domains(func(c *Config) *[]string { return &c.Accounts.SignUp.Blocked })},
		{"PALIMPSEST_SIGNUP_DISPOSABLE", func(c *Config, value string) error {
			if value != "allow" && value != "refuse" {
				return errors.New("must be allow or refuse")
			}
			c.Accounts.SignUp.RefuseDisposable = value == "refuse"
			return nil
		}},
		{"PALIMPSEST_SIGNUP_TELLS", func(c *Config, value string) error {
			c.Accounts.SignUp.Tells = new(bool)
			return truth(func(c *Config) *bool { return c.Accounts.SignUp.Tells })(c, value)
		}},
		{"PALIMPSEST_SIGNUPS_PER_PLACE", func(c *Config, value string) error {
			limit, err := strconv.Atoi(value)
			if err != nil || limit < 1 || limit > maxSignUps {
				return fmt.Errorf("must be a whole number from 1 to %d", maxSignUps)
			}
			c.Accounts.SignUp.PerPlace = limit
			return nil
		}},
		{"PALIMPSEST_WORKSPACES_PER_PERSON", func(c *Config, value string) error {
			limit, err := strconv.Atoi(value)
			if err != nil || limit < 0 || limit > maxWorkspaces {
				return fmt.Errorf("must be 0, which is any number, or a whole number up to %d", maxWorkspaces)
			}
			c.Accounts.SignUp.Workspaces = limit
			return nil
		}},
		{"PALIMPSEST_WORKSPACE_CONCURRENCY", func(c *Config, value string) error {
			limit, err := strconv.Atoi(value)
			if err != nil || limit < 1 {
				return errors.New("must be a whole number from 1")
			}
			c.WorkspaceConcurrency = limit
			return nil
		}},
		{"PALIMPSEST_OPERATOR_CONTACT", func(c *Config, value string) error { c.Accounts.OperatorContact = value; return nil }},
	}
}

// validate names a setting that requires another one.
func (s SignUp) validate() error {
	if s.Open == identity.OpenToDomains && len(s.Domains) == 0 {
		return errors.New("PALIMPSEST_SIGNUP_DOMAINS: is empty, but PALIMPSEST_SIGNUP is domains; name domains such as example.com,example.org")
	}
	return nil
}
