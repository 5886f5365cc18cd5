// Package sums reads the tags of a struct's number fields: where each number is stored, its name in the API
// and in files, and its meaning.
package sums

import (
	"reflect"
	"strconv"
	"strings"
)

// Sum is a total over requests, as described by the tags of a struct field: gorm names its column, json its
// name in the API ("-" hides it), csv its name in files, and help its meaning. SQL, JSON, CSV and the API's
// description are derived from these tags.
type Sum struct {
	Column, JSON, CSV, Help string

	index []int
}

// Of returns the sums of a struct type in the order of its fields, including those of embedded structs.
func Of[T any]() []Sum {
	var sums []Sum
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if column, is := strings.CutPrefix(field.Tag.Get("gorm"), "column:"); is {
			sums = append(sums, Sum{
				Column: column, JSON: field.Tag.Get("json"), CSV: field.Tag.Get("csv"), Help: field.Tag.Get("help"), index: field.Index,
			})
		}
	}
	return sums
}

// In returns the sum's value in a pointer to its struct.
func (s *Sum) In(of any) int64 { return s.field(of).Int() }

// Add adds n to the sum in a pointer to its struct.
func (s *Sum) Add(to any, n int64) { s.field(to).SetInt(s.In(to) + n) }

func (s *Sum) field(of any) reflect.Value { return reflect.ValueOf(of).Elem().FieldByIndex(s.index) }

// SQL returns a list with a copy of each for every sum, with % replaced by its column.
func SQL(sums []Sum, each, separator string) string {
	parts := make([]string, len(sums))
	for i := range sums {
		parts[i] = strings.ReplaceAll(each, "%", sums[i].Column)
	}
	return strings.Join(parts, separator)
}

// CSV returns the file names of the sums that have one, and their values in a pointer to their struct.
func CSV(sums []Sum, of any) (names, values []string) {
	for i := range sums {
		if sums[i].CSV != "" {
			names, values = append(names, sums[i].CSV), append(values, strconv.FormatInt(sums[i].In(of), 10))
		}
	}
	return names, values
}
