// SPDX-License-Identifier: Apache-2.0
// Calls of a function over two pipes: the tests write to 3 and read from 4, the answer the other way round.
// A message is its length and JSON; what is read of it may be hostile.

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"reflect"
)

type nsPipe struct{ source, target *os.File }

func (pipe nsPipe) send(value interface{}) bool {
	text, err := json.Marshal(value)
	if err != nil {
		return false
	}
	size := make([]byte, 8)
	binary.LittleEndian.PutUint64(size, uint64(len(text)))
	_, err = pipe.target.Write(append(size, text...))
	return err == nil
}

func (pipe nsPipe) receive(value interface{}) bool {
	size := make([]byte, 8)
	if _, err := io.ReadFull(pipe.source, size); err != nil || binary.LittleEndian.Uint64(size) > 1<<28 {
		return false
	}
	text := make([]byte, binary.LittleEndian.Uint64(size))
	if _, err := io.ReadFull(pipe.source, text); err != nil {
		return false
	}
	return json.NewDecoder(bytes.NewReader(text)).Decode(value) == nil
}

func nsEnd(why string) {
	os.Stderr.WriteString("ns: " + why + "\n")
	os.Exit(70)
}

var nsAnswer *nsPipe

// The tests' side. `results` are pointers to what is returned.
func nsCall(results []interface{}, given ...interface{}) {
	if nsAnswer == nil {
		nsAnswer = &nsPipe{os.NewFile(4, "replies"), os.NewFile(3, "requests")}
	}
	var reply []json.RawMessage
	if !nsAnswer.send(given) || !nsAnswer.receive(&reply) {
		nsEnd("the answer has ended")
	}
	if len(reply) != len(results) {
		panic("the answer has panicked")
	}
	for number, result := range results {
		if json.Unmarshal(reply[number], result) != nil {
			nsEnd("the answer's value cannot be read")
		}
	}
}

// The answer's side: serves until the tests are gone.
func nsServe(function interface{}) {
	pipe := nsPipe{os.NewFile(3, "requests"), os.NewFile(4, "replies")}
	var given []json.RawMessage
	for pipe.receive(&given) {
		if !pipe.send(nsInvoke(reflect.ValueOf(function), given)) && !pipe.send([]interface{}{}) {
			return
		}
		given = nil
	}
}

func nsInvoke(function reflect.Value, given []json.RawMessage) (results []interface{}) {
	defer func() {
		if recover() != nil {
			results = nil
		}
	}()
	var values []reflect.Value
	for number := 0; number < function.Type().NumIn(); number++ {
		value := reflect.New(function.Type().In(number))
		if json.Unmarshal(given[number], value.Interface()) != nil {
			return nil
		}
		values = append(values, value.Elem())
	}
	for _, result := range function.Call(values) {
		results = append(results, result.Interface())
	}
	return results
}
