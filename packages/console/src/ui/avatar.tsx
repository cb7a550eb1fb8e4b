/** The initials of a person. The name is next to it or in a tooltip. */
export function Avatar({ name }: { name: string }) {
  const words = name.trim().split(/\s+/);
  const initials = [words[0], words.length > 1 ? words.at(-1) : undefined]
    .flatMap((word) => (word ? [...new Intl.Segmenter().segment(word)][0]?.segment : []))
    .join('');
  return (
    <span className="avatar" aria-hidden="true">
      {initials.toLocaleUpperCase()}
    </span>
  );
}
