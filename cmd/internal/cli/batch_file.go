package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/oncepay/oncepay/batch"
	"github.com/oncepay/oncepay/cmd/internal/app"
)

// batchFile is a file that can be read twice.
type batchFile struct {
	file   *os.File
	size   int64
	format batch.Format
	remove string // a temporary file that could not be removed while it is open
}

// openBatchFile opens the file that a run is of. Standard input (-) and whatever cannot be read twice is copied to a temporary file first, which no
// name leads to as soon as it is there.
func openBatchFile(ctx context.Context, name, format string, stdin io.Reader) (*batchFile, error) {
	f := &batchFile{}
	var err error
	if format != "" {
		if f.format, err = batch.ParseFormat(format); err != nil {
			return nil, &app.UsageError{Text: "--format: " + err.Error()}
		}
	} else if name == "-" {
		return nil, &app.UsageError{Text: "--format: is required with standard input: csv or jsonl"}
	} else if f.format, err = batch.FormatOf(name); err != nil {
		return nil, &app.UsageError{Text: "--format: " + err.Error()}
	}
	if name == "-" {
		return f, f.spool(ctx, stdin)
	}
	if f.file, err = os.Open(name); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, &app.UsageError{Text: "the file cannot be read: " + err.Error()}
	}
	info, err := f.file.Stat()
	switch {
	case err != nil:
		_ = f.file.Close()
		return nil, fmt.Errorf("the file cannot be read: %w", err)
	case info.IsDir():
		_ = f.file.Close()
		return nil, &app.UsageError{Text: "the file cannot be read: it is a directory"}
	case !info.Mode().IsRegular():
		pipe := f.file
		defer func() { _ = pipe.Close() }()
		return f, f.spool(ctx, pipe)
	}
	f.size = info.Size()
	return f, nil
}

// spool copies in to a temporary file, which the system gives mode 0600.
func (f *batchFile) spool(ctx context.Context, in io.Reader) error {
	file, err := os.CreateTemp("", "oncepay-batch-*")
	if err != nil {
		return fmt.Errorf("standard input cannot be kept (TMPDIR says where): %w", err)
	}
	f.file = file
	if os.Remove(file.Name()) != nil {
		f.remove = file.Name()
	}
	// A read from a terminal does not end with the context; the copy is left to itself then, and the process ends.
	done := make(chan error, 1)
	go func() {
		n, err := io.Copy(file, in)
		f.size = n
		done <- err
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		if ctx.Err() == nil {
			f.close()
			return fmt.Errorf("standard input cannot be kept (TMPDIR says where): %w", err)
		}
		if f.remove != "" {
			_ = os.Remove(f.remove)
		}
		return ctx.Err()
	}
	return nil
}

// source begins at the start. It is read by one pass at a time.
func (f *batchFile) source() (io.Reader, error) {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("the file cannot be read again: %w", err)
	}
	return f.file, nil
}

func (f *batchFile) close() {
	_ = f.file.Close()
	if f.remove != "" {
		_ = os.Remove(f.remove)
	}
}
