// SPDX-License-Identifier: Apache-2.0
// Calls of a function over two pipes: the tests write to 3 and read from 4, the answer the other way round.
// A message is its length, a blank and JSON; what is read of it may be hostile.
'use strict';
const fs = require('fs');

function send(descriptor, value) {
  const text = Buffer.from(JSON.stringify(value), 'utf8');
  const data = Buffer.concat([Buffer.from(`${text.length} `), text]);
  for (let done = 0; done < data.length;) done += fs.writeSync(descriptor, data, done);
}

function readExactly(descriptor, size) {
  const data = Buffer.alloc(size);
  for (let done = 0; done < size;) {
    const more = fs.readSync(descriptor, data, done, size - done, null);
    if (more === 0) return null;
    done += more;
  }
  return data;
}

function receive(descriptor) {
  let size = '';
  for (;;) {
    const sign = readExactly(descriptor, 1);
    if (sign === null || size.length > 12) return null;
    if (sign[0] === 32) break;
    size += String.fromCharCode(sign[0]);
  }
  if (!/^[0-9]{1,9}$/.test(size)) return null;
  const text = readExactly(descriptor, Number(size));
  return text === null ? null : JSON.parse(text.toString('utf8'));
}

// Arrays, texts, truth values, null and plain numbers are themselves; all else is {kind: content}.
function encode(value) {
  if (value === undefined) return { undefined: 0 };
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number') {
    return Number.isFinite(value) && !Object.is(value, -0) ? value : { number: Object.is(value, -0) ? '-0' : String(value) };
  }
  if (typeof value === 'bigint') return { bigint: String(value) };
  if (Array.isArray(value)) return Array.from(value, encode);
  if (typeof value !== 'object') throw new TypeError(`a ${typeof value} cannot be carried`);
  if (value instanceof Map) return { map: Array.from(value, ([key, item]) => [encode(key), encode(item)]) };
  if (value instanceof Set) return { set: Array.from(value, encode) };
  if (value instanceof Date) return { date: encode(value.getTime()) };
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return encode(value.valueOf());
  return { object: Object.keys(value).map((key) => [key, encode(value[key])]) };
}

function decode(value) {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(decode);
  if ('undefined' in value) return undefined;
  if ('number' in value) {
    const number = Number(value.number);
    if (Number.isNaN(number) && !exports.knowsNan) throw new RangeError('not a number is nowhere near one');
    return number;
  }
  if ('bigint' in value) return BigInt(value.bigint);
  if ('map' in value) return new Map(value.map.map(([key, item]) => [decode(key), decode(item)]));
  if ('set' in value) return new Set(value.set.map(decode));
  if ('date' in value) return new Date(decode(value.date));
  const object = {};
  for (const [key, item] of value.object) {
    Object.defineProperty(object, key, { value: decode(item), writable: true, enumerable: true, configurable: true });
  }
  return object;
}

// What the answer has changed of an argument is changed here.
function update(target, source) {
  if (Array.isArray(target) && Array.isArray(source)) {
    target.length = 0;
    for (const item of source) target.push(item);
  } else if (target instanceof Map && source instanceof Map) {
    target.clear();
    for (const [key, item] of source) target.set(key, item);
  } else if (target instanceof Set && source instanceof Set) {
    target.clear();
    for (const item of source) target.add(item);
  } else if (target && source && Object.getPrototypeOf(target) === Object.prototype) {
    for (const key of Object.keys(target)) delete target[key];
    for (const key of Object.keys(source)) {
      Object.defineProperty(target, key, Object.getOwnPropertyDescriptor(source, key));
    }
  }
}

// Errors that arrive as what they are. A name that is not defined is not among them: the tests' own are told by it.
const KINDS = { TypeError, RangeError, SyntaxError };

exports.knowsNan = true;

function end(why) {
  fs.writeSync(2, `ns: ${why}\n`);
  process.exit(70);
}

// The tests' side.
exports.call = function (given) {
  const asked = given.map(encode);
  send(3, asked);
  let reply;
  try {
    reply = receive(4);
  } catch (error) {
    end("the answer's value cannot be read");
  }
  if (reply === null || typeof reply !== 'object') end('the answer has ended');
  if (typeof reply.raised === 'string') {
    const kind = Object.prototype.hasOwnProperty.call(KINDS, reply.kind) ? KINDS[reply.kind] : Error;
    throw new kind(reply.raised.replace(/\s+/g, ' '));
  }
  try {
    reply.given.forEach((item, at) => {
      if (at < given.length && JSON.stringify(item) !== JSON.stringify(asked[at])) update(given[at], decode(item));
    });
    return decode(reply.value);
  } catch (error) {
    end("the answer's value cannot be read");
  }
};

// The answer's side: serves until the tests are gone.
exports.serve = function (target) {
  for (let asked = receive(3); asked !== null; asked = receive(3)) {
    let reply;
    try {
      const given = asked.map(decode);
      const value = encode(target(...given));
      let after;
      try {
        after = given.map(encode);
      } catch (error) {
        after = asked;
      }
      reply = { value, given: after };
    } catch (error) {
      const known = error instanceof Error;
      reply = { kind: known ? error.name : '', raised: String(known ? error.message : error).slice(0, 300) };
    }
    send(4, reply);
  }
  process.exit(0);
};
