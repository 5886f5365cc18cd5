package session_test

import (
	"errors"
	"net/url"
	"slices"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

func TestFilterIsReadFromAnAddress(t *testing.T) {
	t.Parallel()
	key, workspace := uuid.New(), tenants.NewWorkspaceID()
	hash := session.EndUserID(workspace, "ada")
	for address, want := range map[string]session.Filter{
		"":                                    {},
		"q=a+b&client=c&model=m":              {Query: "a b", Client: "c", Model: "m"},
		"key=" + key.String():                 {APIKey: key},
		"end_user=ada":                        {Whose: session.Whose{EndUser: []string{hash}}},
		"end_user=" + hash:                    {Whose: session.Whose{EndUser: []string{session.EndUserID(workspace, hash), hash}}},
		"project=shop&member=" + key.String(): {Whose: session.Whose{Project: "shop", Member: key}},
		"show=problems&cursor=x&up=1":         {Show: session.ShowProblems, Cursor: "x"},
	} {
		values, err := url.ParseQuery(address)
		if err != nil {
			t.Fatal(err)
		}
		got, err := session.FilterOf(workspace, values)
		if err != nil || got.Query != want.Query || got.Client != want.Client || got.Model != want.Model || got.APIKey != want.APIKey ||
			!slices.Equal(got.EndUser, want.EndUser) || got.Member != want.Member || got.Project != want.Project || got.Show != want.Show || got.Cursor != want.Cursor {
			t.Errorf("%s is %+v (%v), want %+v", address, got, err, want)
		}
	}
}

func TestInvalidFilterIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	workspace := tenants.NewWorkspaceID()
	for address, field := range map[string]string{"key=laptop": "key", "member=ada": "member", "show=Compressed": "show", "show=all": "show"} {
		values, err := url.ParseQuery(address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = session.FilterOf(workspace, values)
		if invalid, is := errors.AsType[session.Invalid](err); !is || invalid.Field != field {
			t.Errorf("%s: %v", address, err)
		}
	}
}
