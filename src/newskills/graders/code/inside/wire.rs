// SPDX-License-Identifier: Apache-2.0
// Calls of a function over two pipes: the tests write to 3 and read from 4, the answer the other way round.
// A message is its length and its text; what is read of it may be hostile. No macros of the
// language's own: a program may define them anew.
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::hash::Hash;
use std::io::{Read, Write};
use std::os::unix::io::FromRawFd;
use std::sync::Mutex;

pub struct Reader {
    text: Vec<u8>,
    at: usize,
}

impl Reader {
    fn word(&mut self) -> Option<&str> {
        let left = self.text.get(self.at..)?;
        let size = left.iter().take(400).position(|&sign| sign == b' ')?;
        self.at += size + 1;
        std::str::from_utf8(&left[..size]).ok()
    }
    fn count(&mut self) -> Option<usize> {
        let number: usize = self.word()?.parse().ok()?;
        if number <= self.text.len() - self.at { Some(number) } else { None }
    }
}

pub trait Put {
    fn put(&self, out: &mut Vec<u8>);
}
pub trait Take: Sized {
    fn take(from: &mut Reader) -> Option<Self>;
}

fn put_word(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(b' ');
}

macro_rules! ns_plain {
    ($($plain:ty)*) => { $(
        impl Put for $plain {
            fn put(&self, out: &mut Vec<u8>) {
                put_word(&self.to_string(), out);
            }
        }
        impl Take for $plain {
            fn take(from: &mut Reader) -> Option<$plain> {
                from.word()?.parse().ok()
            }
        }
    )* };
}
ns_plain! { i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 bool }

impl Put for char {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u32).put(out);
    }
}
impl Take for char {
    fn take(from: &mut Reader) -> Option<char> {
        char::from_u32(u32::take(from)?)
    }
}
impl Put for () {
    fn put(&self, _out: &mut Vec<u8>) {}
}
impl Take for () {
    fn take(_from: &mut Reader) -> Option<()> {
        Some(())
    }
}
impl Put for str {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self.as_bytes());
    }
}
impl Put for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_str().put(out);
    }
}
impl Take for String {
    fn take(from: &mut Reader) -> Option<String> {
        let size = from.count()?;
        let text = from.text.get(from.at..from.at + size)?.to_vec();
        from.at += size;
        String::from_utf8(text).ok()
    }
}
impl<T: Put + ?Sized> Put for &T {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
}
impl<T: Put + ?Sized> Put for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
}
impl<T: Take> Take for Box<T> {
    fn take(from: &mut Reader) -> Option<Box<T>> {
        T::take(from).map(Box::new)
    }
}
impl Take for &'static str {
    fn take(from: &mut Reader) -> Option<&'static str> {
        String::take(from).map(|text| &*Box::leak(text.into_boxed_str()))
    }
}
impl Take for &'static String {
    fn take(from: &mut Reader) -> Option<&'static String> {
        String::take(from).map(|text| &*Box::leak(Box::new(text)))
    }
}
impl<T: Take> Take for &'static [T] {
    fn take(from: &mut Reader) -> Option<&'static [T]> {
        Vec::take(from).map(|items| &*items.leak())
    }
}
impl<T: Take> Take for &'static Vec<T> {
    fn take(from: &mut Reader) -> Option<&'static Vec<T>> {
        Vec::take(from).map(|items| &*Box::leak(Box::new(items)))
    }
}
impl<T: Put> Put for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(item) = self {
            item.put(out);
        }
    }
}
impl<T: Take> Take for Option<T> {
    fn take(from: &mut Reader) -> Option<Option<T>> {
        if bool::take(from)? { Some(Some(T::take(from)?)) } else { Some(None) }
    }
}
impl<T: Put, E: Put> Put for Result<T, E> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(item) => item.put(out),
            Err(item) => item.put(out),
        }
    }
}
impl<T: Take, E: Take> Take for Result<T, E> {
    fn take(from: &mut Reader) -> Option<Result<T, E>> {
        if bool::take(from)? { Some(Ok(T::take(from)?)) } else { Some(Err(E::take(from)?)) }
    }
}
impl<T: Put> Put for [T] {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for item in self {
            item.put(out);
        }
    }
}
impl<T: Put, const N: usize> Put for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_slice().put(out);
    }
}
impl<T: Take, const N: usize> Take for [T; N] {
    fn take(from: &mut Reader) -> Option<[T; N]> {
        Vec::take(from)?.try_into().ok()
    }
}

fn items<T: Take, C: FromIterator<T>>(from: &mut Reader) -> Option<C> {
    (0..from.count()?).map(|_| T::take(from)).collect()
}
fn put_items<T: Put>(size: usize, items: impl Iterator<Item = T>, out: &mut Vec<u8>) {
    size.put(out);
    for item in items {
        item.put(out);
    }
}
impl<T: Put> Put for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_slice().put(out);
    }
}
impl<T: Take> Take for Vec<T> {
    fn take(from: &mut Reader) -> Option<Vec<T>> {
        items(from)
    }
}
impl<T: Put> Put for VecDeque<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_items(self.len(), self.iter(), out);
    }
}
impl<T: Take> Take for VecDeque<T> {
    fn take(from: &mut Reader) -> Option<VecDeque<T>> {
        items(from)
    }
}
impl<T: Put> Put for HashSet<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_items(self.len(), self.iter(), out);
    }
}
impl<T: Take + Eq + Hash> Take for HashSet<T> {
    fn take(from: &mut Reader) -> Option<HashSet<T>> {
        items(from)
    }
}
impl<T: Put> Put for BTreeSet<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_items(self.len(), self.iter(), out);
    }
}
impl<T: Take + Ord> Take for BTreeSet<T> {
    fn take(from: &mut Reader) -> Option<BTreeSet<T>> {
        items(from)
    }
}
impl<K: Put, V: Put> Put for HashMap<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        put_items(self.len(), self.iter(), out);
    }
}
impl<K: Take + Eq + Hash, V: Take> Take for HashMap<K, V> {
    fn take(from: &mut Reader) -> Option<HashMap<K, V>> {
        items(from)
    }
}
impl<K: Put, V: Put> Put for BTreeMap<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        put_items(self.len(), self.iter(), out);
    }
}
impl<K: Take + Ord, V: Take> Take for BTreeMap<K, V> {
    fn take(from: &mut Reader) -> Option<BTreeMap<K, V>> {
        items(from)
    }
}
impl<A: Put, B: Put> Put for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
}
impl<A: Take, B: Take> Take for (A, B) {
    fn take(from: &mut Reader) -> Option<(A, B)> {
        Some((A::take(from)?, B::take(from)?))
    }
}
impl<A: Put, B: Put, C: Put> Put for (A, B, C) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }
}
impl<A: Take, B: Take, C: Take> Take for (A, B, C) {
    fn take(from: &mut Reader) -> Option<(A, B, C)> {
        Some((A::take(from)?, B::take(from)?, C::take(from)?))
    }
}

struct Pipe {
    source: File,
    target: File,
}

impl Pipe {
    fn new(source: i32, target: i32) -> Pipe {
        unsafe { Pipe { source: File::from_raw_fd(source), target: File::from_raw_fd(target) } }
    }
    fn send(&mut self, text: &[u8]) -> Option<()> {
        self.target.write_all(&(text.len() as u64).to_le_bytes()).ok()?;
        self.target.write_all(text).ok()
    }
    fn receive(&mut self) -> Option<Reader> {
        let mut size = [0; 8];
        self.source.read_exact(&mut size).ok()?;
        let size = u64::from_le_bytes(size);
        if size > 1 << 28 {
            return None;
        }
        let mut text = std::iter::repeat(0).take(size as usize).collect::<Vec<u8>>();
        self.source.read_exact(&mut text).ok()?;
        Some(Reader { text, at: 0 })
    }
}

fn end(why: &str) -> ! {
    let _ = std::io::stderr().write_all(why.as_bytes());
    std::process::exit(70)
}

static PIPE: Mutex<Option<Pipe>> = Mutex::new(None);

/// The tests' side.
pub fn call<R: Take>(put: impl FnOnce(&mut Vec<u8>)) -> R {
    let mut text = Vec::new();
    put(&mut text);
    let reply = {
        let mut pipe = PIPE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let pipe = pipe.get_or_insert_with(|| Pipe::new(4, 3));
        pipe.send(&text).and_then(|_| pipe.receive())
    };
    let mut reply = reply.unwrap_or_else(|| end("ns: the answer has ended\n"));
    match reply.word() {
        Some("value") => {}
        Some("raised") => std::panic::panic_any(String::take(&mut reply).unwrap_or_default()),
        _ => end("ns: the answer's value cannot be read\n"),
    }
    R::take(&mut reply).unwrap_or_else(|| end("ns: the answer's value cannot be read\n"))
}

/// The answer's side: serves until the tests are gone.
pub fn serve(target: impl Fn(&mut Reader, &mut Vec<u8>) -> Option<()>) {
    let mut pipe = Pipe::new(3, 4);
    while let Some(mut asked) = pipe.receive() {
        let mut reply = b"value ".to_vec();
        let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(&mut asked, &mut reply)));
        if let Err(panic) = called {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            reply = b"raised ".to_vec();
            text.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default().put(&mut reply);
        } else if !matches!(called, Ok(Some(()))) {
            reply = b"raised ".to_vec();
        }
        if pipe.send(&reply).is_none() {
            return;
        }
    }
}

pub fn take<T: Take>(from: &mut Reader) -> Option<T> {
    T::take(from)
}
pub fn put<T: Put + ?Sized>(value: &T, out: &mut Vec<u8>) {
    value.put(out);
}
