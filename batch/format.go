package batch

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
)

// Format is how a file writes payments down.
type Format string

// The formats.
const (
	CSV       Format = "csv"   // RFC 4180 with a header row
	JSONLines Format = "jsonl" // one intent a line
)

// FormatOf returns the format that the extension of a file's name stands for: .csv, .jsonl or .ndjson.
func FormatOf(name string) (Format, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return CSV, nil
	case ".jsonl", ".ndjson":
		return JSONLines, nil
	}
	return "", errors.New("the name does not end in .csv, .jsonl or .ndjson: say which it is, csv or jsonl")
}

// ParseFormat reads the name of a format: csv, jsonl or ndjson.
func ParseFormat(name string) (Format, error) {
	switch strings.ToLower(name) {
	case "csv":
		return CSV, nil
	case "jsonl", "ndjson":
		return JSONLines, nil
	}
	return "", errors.New("must be csv or jsonl")
}

// Source begins to read the file from its start. It is called once for each pass.
type Source func() (io.Reader, error)

// row is one payment of a file.
type row struct {
	number int64 // from 1, the header and blank lines not counted
	line   int64 // of the file, from 1, on which the row begins
	wire   intent
	wrong  []string // columns that have a fault already
}

// rows reads a file row by row.
type rows interface {
	// next reads the next row into r, which is the zero row. ok false: nothing more can be said of the row than was noted. The error is io.EOF after
	// the last row, errStop where what follows cannot be read, or the reader's.
	next(r *row) (ok bool, err error)
	// column is the column of the file that a member of an intent is read from.
	column(member string) string
}

func newRows(f Format, in io.Reader, found *faults) (rows, error) {
	switch f {
	case CSV:
		return newCSV(in, found), nil
	case JSONLines:
		return newLines(in, found), nil
	}
	return nil, errors.New("there is no such format")
}
