// What the models of these examples do, so that none of them needs a key: one call, and an answer made of its result.
export const CALL = {
  id: "call_1",
  name: "sandbox_local_run",
  args: { code: 'import csv\nprint(sum(int(row["sold"]) for row in csv.DictReader(open("sales.csv"))))' },
};

/** @param {string} result what the tool has returned: JSON */
export const answerTo = (result) => `${JSON.parse(result).output.trim()} were sold.`;
