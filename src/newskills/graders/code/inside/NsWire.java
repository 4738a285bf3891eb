// SPDX-License-Identifier: Apache-2.0
// Calls of a method over the standard streams. What is read of a message may be hostile.

import java.io.*;
import java.lang.reflect.*;
import java.util.*;

final class NsWire {
  private static final DataInputStream IN = new DataInputStream(new BufferedInputStream(new FileInputStream(FileDescriptor.in)));
  private static final DataOutputStream OUT = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
  private static final int DEEPEST = 500;

  private static boolean knowsNan = true;

  static void silence() {
    System.setIn(new ByteArrayInputStream(new byte[0]));
    System.setOut(new PrintStream(OutputStream.nullOutputStream()));
  }

  /** Before the tests begin: all of their classes are read, since their files will be gone. */
  static void prepare(boolean nan) throws ClassNotFoundException {
    silence();
    knowsNan = nan;
    for (String name : new File(".").list()) {
      if (name.endsWith(".class")) Class.forName(name.substring(0, name.length() - 6), false, NsWire.class.getClassLoader());
    }
  }

  /** The tests' side. */
  static <T> T call(Object... given) {
    try {
      put(given, 0);
      OUT.flush();
      if (IN.readByte() != 'v') throw exception(IN.readUTF(), IN.readUTF());
      Object[] after = (Object[]) take(0);
      for (int at = 0; at < given.length && at < after.length; at++) update(given[at], after[at]);
      @SuppressWarnings("unchecked") T result = (T) take(0);
      return result;
    } catch (IOException | Unreadable | ClassCastException error) {
      System.err.println("ns: the answer has ended, or its value cannot be read");
      Runtime.getRuntime().halt(70);
      return null;
    }
  }

  /** The answer's side: serves until the tests are gone. */
  static void serve(String type, String name, int count) throws Exception {
    silence();
    while (true) {
      Object[] given;
      try {
        given = (Object[]) take(0);
      } catch (EOFException end) {
        Runtime.getRuntime().halt(0);
        return;
      }
      try {
        Object value = invoke(type, name, count, given);
        ByteArrayOutputStream kept = new ByteArrayOutputStream();
        new NsPut(new DataOutputStream(kept)).all(given, value);
        OUT.writeByte('v');
        kept.writeTo(OUT);
      } catch (Throwable error) {
        Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
        OUT.writeByte('r');
        String text = String.valueOf(cause.getMessage());
        OUT.writeUTF(cause.getClass().getName());
        OUT.writeUTF(text.substring(0, Math.min(300, text.length())));
      }
      OUT.flush();
    }
  }

  private static final class Unreadable extends RuntimeException {
    Unreadable(String what) {
      super(what);
    }
  }

  /** As the answer has thrown it, where it is one of Java's own that tests may expect. */
  private static RuntimeException exception(String type, String text) {
    try {
      Class<?> kind = type.matches("java\\.(lang|util)\\.\\w+Exception") ? Class.forName(type) : RuntimeException.class;
      return (RuntimeException) kind.getConstructor(String.class).newInstance(text);
    } catch (ReflectiveOperationException | ClassCastException unknown) {
      return new RuntimeException(type + ": " + text);
    }
  }

  private static Object invoke(String type, String name, int count, Object[] given) throws Throwable {
    Class<?> holder = Class.forName(type);
    IllegalArgumentException misfit = null;
    for (Method method : holder.getDeclaredMethods()) {
      if (!method.getName().equals(name) || method.getParameterCount() != count || method.isBridge()) continue;
      method.setAccessible(true);
      Object self = null;
      if (!Modifier.isStatic(method.getModifiers())) {
        Constructor<?> constructor = holder.getDeclaredConstructor();
        constructor.setAccessible(true);
        self = constructor.newInstance();
      }
      try {
        return method.invoke(self, given);
      } catch (IllegalArgumentException error) {
        misfit = error;
      }
    }
    throw misfit != null ? misfit : new NoSuchMethodException(name);
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static void update(Object target, Object source) {
    try {
      if (target instanceof List && !target.equals(source)) {
        if (((List) target).size() == ((List) source).size()) {
          for (int at = 0; at < ((List) target).size(); at++) ((List) target).set(at, ((List) source).get(at));
          return;
        }
        ((List) target).clear();
        ((List) target).addAll((List) source);
      } else if (target instanceof Map && !target.equals(source)) {
        ((Map) target).clear();
        ((Map) target).putAll((Map) source);
      } else if (target instanceof Set && !target.equals(source)) {
        ((Set) target).clear();
        ((Set) target).addAll((Set) source);
      } else if (target != null && target.getClass().isArray() && Array.getLength(target) == Array.getLength(source)) {
        System.arraycopy(source, 0, target, 0, Array.getLength(target));
      }
    } catch (UnsupportedOperationException unchangeable) {
      return;
    }
  }

  private static void put(Object[] values, int depth) throws IOException {
    new NsPut(OUT).one(values, depth);
  }

  private static java.math.BigDecimal number(String text) {
    try {
      return new java.math.BigDecimal(text);
    } catch (NumberFormatException error) {
      throw new Unreadable("number");
    }
  }

  private static <T extends Number> T known(T value) {
    if (Double.isNaN(value.doubleValue()) && !knowsNan) throw new Unreadable("not a number is nowhere near one");
    return value;
  }

  private static int size() throws IOException {
    int size = IN.readInt();
    if (size < 0 || size > 1 << 26) throw new Unreadable("size");
    return size;
  }

  private static Object take(int depth) throws IOException {
    if (depth > DEEPEST) throw new Unreadable("too deep");
    byte kind = IN.readByte();
    switch (kind) {
      case '0': return null;
      case 'z': return IN.readBoolean();
      case 'b': return IN.readByte();
      case 'c': return IN.readChar();
      case 's': return IN.readShort();
      case 'i': return IN.readInt();
      case 'l': return IN.readLong();
      case 'f': return known(IN.readFloat());
      case 'd': return known(IN.readDouble());
      case 'O': return Optional.ofNullable(take(depth + 1));
      case 'B': return number((String) take(depth + 1)).toBigInteger();
      case 'D': return number((String) take(depth + 1));
      case 'S': {
        char[] text = new char[size()];
        for (int at = 0; at < text.length; at++) text[at] = IN.readChar();
        return new String(text);
      }
      case 'A': {
        Class<?> part = partOf((String) take(depth + 1));
        Object array = Array.newInstance(part, size());
        try {
          for (int at = 0; at < Array.getLength(array); at++) Array.set(array, at, take(depth + 1));
        } catch (IllegalArgumentException error) {
          throw new Unreadable("item");
        }
        return array;
      }
      case 'L': case 'E': {
        Collection<Object> items = kind == 'L' ? new ArrayList<>() : new LinkedHashSet<>();
        for (int left = size(); left > 0; left--) items.add(take(depth + 1));
        return kind == 'L' ? items : new HashSet<>(items);
      }
      case 'M': {
        Map<Object, Object> map = new HashMap<>();
        for (int left = size(); left > 0; left--) map.put(take(depth + 1), take(depth + 1));
        return map;
      }
      default: throw new Unreadable("kind");
    }
  }

  private static final Map<String, Class<?>> PARTS = new HashMap<>();

  static {
    for (Class<?> part : new Class<?>[] {
        boolean.class, byte.class, char.class, short.class, int.class, long.class, float.class, double.class,
        Object.class, String.class, Boolean.class, Byte.class, Character.class, Short.class, Integer.class, Long.class,
        Float.class, Double.class, List.class, ArrayList.class, Map.class, Set.class, Optional.class}) {
      Class<?> array = part;
      for (int depth = 0; depth < 4; depth++, array = array.arrayType()) PARTS.put(array.getName(), array);
    }
  }

  static Class<?> partOf(String name) {
    Class<?> part = PARTS.get(name);
    return part == null ? Object.class : part;
  }
}

final class NsPut {
  private final DataOutputStream out;

  NsPut(DataOutputStream out) {
    this.out = out;
  }

  void all(Object[] given, Object value) throws IOException {
    one(given, 0);
    one(value, 0);
  }

  void one(Object value, int depth) throws IOException {
    if (depth > 500) throw new IllegalArgumentException("too deep");
    if (value == null) out.writeByte('0');
    else if (value instanceof Boolean) { out.writeByte('z'); out.writeBoolean((Boolean) value); }
    else if (value instanceof Byte) { out.writeByte('b'); out.writeByte((Byte) value); }
    else if (value instanceof Character) { out.writeByte('c'); out.writeChar((Character) value); }
    else if (value instanceof Short) { out.writeByte('s'); out.writeShort((Short) value); }
    else if (value instanceof Integer) { out.writeByte('i'); out.writeInt((Integer) value); }
    else if (value instanceof Long) { out.writeByte('l'); out.writeLong((Long) value); }
    else if (value instanceof Float) { out.writeByte('f'); out.writeFloat((Float) value); }
    else if (value instanceof Double) { out.writeByte('d'); out.writeDouble((Double) value); }
    else if (value instanceof Optional) { out.writeByte('O'); one(((Optional<?>) value).orElse(null), depth + 1); }
    else if (value instanceof java.math.BigInteger) { out.writeByte('B'); text(value.toString()); }
    else if (value instanceof java.math.BigDecimal) { out.writeByte('D'); text(value.toString()); }
    else if (value instanceof CharSequence) text(value.toString());
    else if (value.getClass().isArray()) {
      out.writeByte('A');
      text(value.getClass().getComponentType().getName());
      out.writeInt(Array.getLength(value));
      for (int at = 0; at < Array.getLength(value); at++) one(Array.get(value, at), depth + 1);
    } else if (value instanceof Map) {
      out.writeByte('M');
      out.writeInt(((Map<?, ?>) value).size());
      for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) { one(each.getKey(), depth + 1); one(each.getValue(), depth + 1); }
    } else if (value instanceof Collection) {
      out.writeByte(value instanceof Set ? 'E' : 'L');
      Object[] items = ((Collection<?>) value).toArray();
      out.writeInt(items.length);
      for (Object each : items) one(each, depth + 1);
    } else throw new IllegalArgumentException("a value of " + value.getClass().getName() + " cannot be carried");
  }

  private void text(String value) throws IOException {
    out.writeByte('S');
    out.writeInt(value.length());
    out.writeChars(value);
  }
}
